"""What becomes of the failed runs of two published benchmarks: frozen, red on the trace, executed by a generic loop."""
