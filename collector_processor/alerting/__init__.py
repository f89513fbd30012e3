"""When flagged runs are an alert, and who is told."""
