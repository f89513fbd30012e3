"""A process with a journal and nothing else: appends records until it is killed, and says which are durable.

``python records.py HOME FIRST COUNT`` prints the numbers FIRST to FIRST + COUNT - 1, each once its record is
acknowledged, and waits. Each record is in a segment of its own.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from redfirst.collector_processor.home import Home, HomeLock
from redfirst.collector_processor.journal.format import Record
from redfirst.collector_processor.journal.writing import Journal, JournalLimits

if __name__ == "__main__":
    home, first, count = Home(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
    lock = HomeLock(home)
    journal = Journal(home.journal, limits=JournalLimits(segment_bytes=1))
    for number in range(first, first + count):
        body = b"%d " % number * 20
        journal.append(Record(signal="traces", tenant="default", arrival_ns=1, body=body)).result(60)
        print(number, flush=True)
    time.sleep(600)
