"""Recorded runs, out of files, the store or the journal."""
