// An agent's trace written by hand with the GenAI conventions, as a program without an instrumentor writes it.
// Goes to OTEL_EXPORTER_OTLP_ENDPOINT as OTEL_EXPORTER_OTLP_PROTOCOL says. twin_agent.py writes the same in Python.
"use strict";
const { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } = require("@opentelemetry/api");
const { resourceFromAttributes } = require("@opentelemetry/resources");
const { BatchSpanProcessor, NodeTracerProvider } = require("@opentelemetry/sdk-trace-node");

const PACKAGES = { "http/protobuf": "proto", "http/json": "http", grpc: "grpc" };
const { OTLPTraceExporter } = require(
  `@opentelemetry/exporter-trace-otlp-${PACKAGES[process.env.OTEL_EXPORTER_OTLP_PROTOCOL]}`,
);
let spans = 0;
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": "support" }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  idGenerator: {
    generateTraceId: () => "5e0a7c31b2d94f68a1c3e5079bd2f486",
    generateSpanId: () => (0xa000 + ++spans).toString(16).padStart(16, "0"),
  },
});
const tracer = provider.getTracer("support", "1.4.0");
const at = (milliseconds) => [1_900_000_000, milliseconds * 1_000_000 + 123]; // seconds and nanoseconds
const text = (role, content) => ({ role, parts: [{ type: "text", content }] });

const REQUEST = text("user", "Où est ma commande A-42 ? 📦");
const ANSWER = text("assistant", "Order A-42 is shipped.");
const CALLS = ["A-24", "A-42"].map((order, place) => ({
  type: "tool_call", id: `call_${place}`, name: "get_order", arguments: { order_id: order },
}));
const RESULT = { order_id: "A-42", status: "shipped", weight: 0.5, parcels: 2, gift: false, note: null };

function agent() {
  const about = { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support_agent", "gen_ai.agent.version": "7" };
  const span = tracer.startSpan("invoke_agent support_agent", { attributes: about, startTime: at(0) }, ROOT_CONTEXT);
  span.setAttribute("gen_ai.conversation.id", "conversation-9");
  const within = trace.setSpan(ROOT_CONTEXT, span);
  chat(within, 10, [REQUEST], { role: "assistant", parts: CALLS }, "tool_calls", 120);
  tool(within, 30, CALLS[0], new Error("no order A-24"));
  tool(within, 40, CALLS[1], RESULT);
  const answered = CALLS.map(({ id }, place) => ({ type: "tool_call_response", id, response: place ? RESULT : "no order A-24" }));
  const history = [REQUEST, { role: "assistant", parts: CALLS }, { role: "tool", parts: answered }];
  chat(within, 60, history, ANSWER, "stop", 210);
  span.end(at(90));
}

function chat(within, start, input, output, finish, tokens) {
  const span = tracer.startSpan("chat scripted-1", { kind: SpanKind.CLIENT, startTime: at(start) }, within);
  span.setAttributes({
    "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "scripted-1", "gen_ai.request.temperature": 0, "gen_ai.request.top_p": 0.9,
    "gen_ai.response.finish_reasons": [finish], "gen_ai.usage.input_tokens": tokens,
    "gen_ai.usage.output_tokens": tokens / 10, "gen_ai.usage.cache_read.input_tokens": 64,
    "gen_ai.input.messages": JSON.stringify(input), "gen_ai.output.messages": JSON.stringify([output]),
  });
  span.end(at(start + 15));
}

function tool(within, start, call, result) {
  const span = tracer.startSpan("execute_tool get_order", { startTime: at(start) }, within);
  span.setAttributes({
    "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.name, "gen_ai.tool.call.id": call.id,
    "gen_ai.tool.call.arguments": JSON.stringify(call.arguments),
  });
  if (result instanceof Error) {
    span.setAttribute("error.type", "LookupError");
    span.addEvent("exception", { "exception.type": "LookupError", "exception.message": result.message }, at(start + 5));
    span.setStatus({ code: SpanStatusCode.ERROR, message: result.message });
  } else {
    span.setAttribute("gen_ai.tool.call.result", JSON.stringify(result));
  }
  span.end(at(start + 9));
}

agent();
provider.shutdown();
