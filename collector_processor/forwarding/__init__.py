"""Accepted requests to other OTLP backends, byte for byte."""
