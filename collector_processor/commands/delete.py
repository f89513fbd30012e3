"""``redfirst delete``: erase a run from the store; a tombstone keeps its late spans from bringing it back."""

from __future__ import annotations

import argparse
import json
import time

from redfirst.collector_processor.commands.changing import add_run_arguments, change, home_of


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_run_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def execute(options: argparse.Namespace) -> int:
    """Erase the run. Its bytes leave the journal when retention removes their segment."""
    run_id = change(
        home_of(options.home),
        options.run,
        "delete",
        {},
        lambda store, name: store.delete(name, at_ns=time.time_ns()),
    )
    print(
        json.dumps({"trace_id": run_id, "deleted": True})
        if options.json
        else f"{run_id}: erased; its bytes leave the journal with their segment"
    )
    return 0
