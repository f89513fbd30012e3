"""Ask the support agent something: ``python -m bookshop "Where is order A-1001?"``."""

from __future__ import annotations

import argparse
import logging

from redfirst.instrumentation import configure, shutdown, span_counts

from . import variants
from .agent import make
from .tasks import DEFECTIVE, HEALTHY, conversations, play


def main() -> None:
    """Answer one request, or play a whole day of conversations."""
    parser = argparse.ArgumentParser(prog="python -m bookshop", description=__doc__)
    parser.add_argument(
        "request", nargs="?", help="what the customer says; without it, a day of conversations"
    )
    parser.add_argument(
        "--variant", choices=[HEALTHY, *DEFECTIVE], default=HEALTHY, help="which agent answers"
    )
    parser.add_argument("--seed", type=int, help="of the scripted model")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--spans", default="bookshop.jsonl", help="file of spans to append to (default: %(default)s)"
    )
    where.add_argument(
        "--otlp", action="store_true", help="export to OTEL_EXPORTER_OTLP_ENDPOINT instead of a file"
    )
    arguments = parser.parse_args()
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # what was lost is said at the end
    configure("bookshop", file=None if arguments.otlp else arguments.spans)
    if arguments.request is None:
        for one in conversations(arguments.seed or 0):
            print(f"{one.task.id:20} {one.variant:20} {play(one)}")
    else:
        factory = make if arguments.variant == HEALTHY else getattr(variants, arguments.variant)
        print(factory(seed=arguments.seed)(arguments.request))
    shutdown()
    counts = span_counts()
    lost = sum(exporter.lost for exporter in counts.exporters or ()) if counts else 0
    if counts and lost:
        raise SystemExit(
            f"bookshop: {lost} of {counts.ended} spans were not delivered; does the endpoint listen?"
        )


if __name__ == "__main__":
    main()
