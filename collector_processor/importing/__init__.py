"""Records of other systems as OTLP: result files of benchmarks, exports of trace stores, lists of messages."""
