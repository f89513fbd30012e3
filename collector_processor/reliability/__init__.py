"""How often an agent succeeds, how surely that is known, and what a success costs."""
