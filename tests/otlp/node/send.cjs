// Sends as many traces of two spans as COUNT says, one request after another, as the stock exporter does it.
// Goes to OTEL_EXPORTER_OTLP_ENDPOINT by OTEL_EXPORTER_OTLP_PROTOCOL; prints how many were exported.
"use strict";
const { ROOT_CONTEXT, trace } = require("@opentelemetry/api");
const { ExportResultCode } = require("@opentelemetry/core");
const { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } = require("@opentelemetry/sdk-trace-node");

const PACKAGES = { "http/protobuf": "proto", "http/json": "http", grpc: "grpc" };
const { OTLPTraceExporter } = require(
  `@opentelemetry/exporter-trace-otlp-${PACKAGES[process.env.OTEL_EXPORTER_OTLP_PROTOCOL]}`,
);
const exporter = new OTLPTraceExporter({ timeoutMillis: 20_000 });
const memory = new InMemorySpanExporter();
const tracer = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(memory)] }).getTracer("sent", "1");
const exported = (spans) => new Promise((done) => exporter.export(spans, (result) => done(result.code === ExportResultCode.SUCCESS)));

async function main() {
  let count = 0;
  for (let n = 0; n < Number(process.env.COUNT); n++) {
    const outer = tracer.startSpan("outer", { attributes: { n, half: 0.5, list: ["a", "ä"], yes: true } }, ROOT_CONTEXT);
    tracer.startSpan("inner", {}, trace.setSpan(ROOT_CONTEXT, outer)).addEvent("e").end();
    outer.end();
    count += await exported(memory.getFinishedSpans());
    memory.reset();
  }
  await exporter.shutdown();
  console.log(count);
}

main();
