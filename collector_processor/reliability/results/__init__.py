"""Readers of results: each turns one kind of file into trials."""
