"""From accepted requests to verdicts: assembly, the scorer's process, and what is stored."""
