"""Two questions of one customer to the sample agent, in a session, sent to ``OTEL_EXPORTER_OTLP_ENDPOINT``."""

from __future__ import annotations

from redfirst.examples.bookshop.agent import make
from redfirst.instrumentation import configure, session, shutdown, span_counts

QUESTIONS = ("Where is order A-1001?", "Where is order A-1002?")


def main() -> None:
    """Ask, and see that everything was taken."""
    configure("bookshop")
    with session("conversation-1", user="customer-7"):
        for seed, question in enumerate(QUESTIONS):
            print(make(seed=seed)(question))
    shutdown()
    counts = span_counts()
    assert counts is not None
    assert counts.exporters
    assert counts.exporters[0].exported == counts.ended, counts
    print(counts.ended)


if __name__ == "__main__":
    main()
