"""Traces out of the backends that teams have: Phoenix, MLflow, Jaeger, Langfuse."""
