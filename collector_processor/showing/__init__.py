"""A run as lines that a person reads from top to bottom."""
