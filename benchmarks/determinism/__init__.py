"""How many of a hundred different programs are proven deterministically, and which planted chance is found and named."""
