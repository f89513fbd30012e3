"""Posting to somebody else's server, and what its answer means."""
