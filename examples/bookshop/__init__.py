"""A small bookshop's support agent: an ordinary tool-using loop to run, break and repair."""
