"""Numbers over few runs, each with how sure it is. Pure and deterministic: what is random takes a seed.

A number that the data does not define is ``None`` (in arrays NaN), never 0 and never extrapolated.
"""
