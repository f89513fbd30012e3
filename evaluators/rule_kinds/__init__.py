"""One module per kind of rule: its parameters and the pure function that judges a run by them."""
