// Runs one scenario with the Vercel AI SDK of the folder it is copied to.
import { appendFileSync } from 'node:fs';
import { createOpenAI } from '@ai-sdk/openai';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { BatchSpanProcessor, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const scenario = process.argv[2];
const asked = JSON.parse(process.env.ASKED);
const exporter = new OTLPTraceExporter();
const small = { maxExportBatchSize: 4, scheduledDelayMillis: 600000 };
const processor = scenario === 'parallel' ? new SimpleSpanProcessor(exporter) : new BatchSpanProcessor(exporter, ['loop_cap', 'handoff'].includes(scenario) ? small : { scheduledDelayMillis: 600000 });
const provider = new NodeTracerProvider({ resource: resourceFromAttributes({ 'service.name': 'support-desk' }), spanProcessors: [processor] });
provider.register();

const openai = createOpenAI({ baseURL: process.env.MODEL_URL, apiKey: 'sk-fake' });
const model = () => (process.env.API === 'responses' ? openai.responses('gpt-4o-mini') : openai.chat('gpt-4o-mini'));
const places = { 'B-17': 'shipped', 'B-18': 'packed' };
function act(name, given, work) {
  let result = null, error = null;
  try { result = work(given); } catch (problem) { error = `Error: ${problem.message}`; }
  appendFileSync(process.env.TOOL_LOG, JSON.stringify({ name, arguments: given, result, error }) + '\n');
  if (error) throw new Error('carrier API timeout');
  return result;
}
const text = z.string();
const made = (name, shape, work) => tool({ description: name, inputSchema: z.object(shape), execute: async given => act(name, given, work) });
const tools = {
  verify_identity: made('verify_identity', { customer_id: text }, g => ({ customer_id: g.customer_id, verified: true })),
  get_order: made('get_order', { order_id: text }, g => ({ order_id: g.order_id, status: places[g.order_id] ?? null })),
  get_shipping_status: made('get_shipping_status', { order_id: text }, () => { throw new Error('carrier API timeout'); }),
  cancel_order: made('cancel_order', { order_id: text, reason: text }, g => ({ order_id: g.order_id, cancelled: true })),
};
const recorded = scenario !== 'happy_nocontent';
const telemetry = functionId => ({ isEnabled: true, functionId, recordInputs: recorded, recordOutputs: recorded, metadata: { sessionId: process.env.SESSION, userId: process.env.USER_ID } });
const common = { model: model(), maxRetries: 0 };
const call = async options => {
  if (scenario !== 'happy_stream') return generateText(options);
  const result = streamText(options);
  await result.consumeStream();
  return { text: await result.text, response: await result.response, steps: await result.steps, finishReason: await result.finishReason };
};

let stopped = 'self', error = null;
try {
  if (scenario === 'handoff') {
    const refunds = tool({
      description: 'the refunds agent',
      inputSchema: z.object({ request: text }),
      execute: async given => (await generateText({ ...common, tools, system: 'You cancel orders.', prompt: given.request, stopWhen: stepCountIs(5), experimental_telemetry: telemetry('refunds_agent') })).text,
    });
    await call({ ...common, system: 'You are the support agent of a shop.', prompt: asked[0], tools: { handoff_to_refunds_agent: refunds }, stopWhen: stepCountIs(5), experimental_telemetry: telemetry('triage_agent') });
  } else {
    const messages = [];
    for (const content of asked) {
      messages.push({ role: 'user', content });
      const result = await call({ ...common, tools, system: 'You are the support agent of a shop.', messages: [...messages], stopWhen: stepCountIs(scenario === 'loop_cap' ? 4 : 6), experimental_telemetry: telemetry('support_agent') });
      messages.push(...result.response.messages);
      if (result.finishReason === 'tool-calls') stopped = 'cap';
    }
  }
} catch (problem) { stopped = 'error'; error = `${problem.name}: ${problem.message}`; }
await provider.forceFlush();
await provider.shutdown();
console.log('DONE ' + JSON.stringify({ stopped, error }));
