"""The example of a page, called once; prints the spans it left: ``python litellm_program.py EXAMPLE.py REQUEST``."""

import asyncio
import json
import sys
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from redfirst.instrumentation import configure

exporter = InMemorySpanExporter()
provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(SimpleSpanProcessor(exporter))
configure(provider=provider)
names: dict = {}
exec(compile(Path(sys.argv[1]).read_text("utf-8"), sys.argv[1], "exec"), names)
messages = [{"role": "user", "content": sys.argv[2]}]
asyncio.run(names["chat"](messages, model="openai/scripted"))
for span in exporter.get_finished_spans():
    print(json.dumps({"name": span.name, "status": span.status.status_code.name, **dict(span.attributes)}))
