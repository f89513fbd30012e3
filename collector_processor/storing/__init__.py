"""The store: the seam, and SQLite behind it."""
