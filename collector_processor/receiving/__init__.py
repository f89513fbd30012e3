"""OTLP in: the ports, and what of a request is accepted."""
