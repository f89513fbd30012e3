"""Verdicts to the backends where people look at traces."""
