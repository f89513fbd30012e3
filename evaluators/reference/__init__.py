"""Runs against acceptable trajectories: which calls were needed, allowed, rightly made, and in order."""
