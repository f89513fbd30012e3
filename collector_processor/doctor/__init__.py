"""What in an environment keeps spans from the checks."""
