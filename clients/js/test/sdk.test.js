import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-node';
import { TraceflakeIdGenerator, timeOf } from '../traceflake.js';
import { costs } from './cost.js';

function provider(config = {}) {
  const exporter = new InMemorySpanExporter();
  return [exporter, new NodeTracerProvider({ idGenerator: new TraceflakeIdGenerator(), spanProcessors: [new SimpleSpanProcessor(exporter)], ...config }).getTracer('test')];
}

it('the SDK for Node starts ordered traces', () => {
  const [exporter, tracer] = provider();
  const before = Date.now();
  for (let i = 0; i < 100; i++) {
    const root = tracer.startSpan('root', {}, ROOT_CONTEXT);
    tracer.startSpan('child', {}, trace.setSpan(ROOT_CONTEXT, root)).end();
    root.end();
  }
  const after = Date.now();
  const spans = exporter.getFinishedSpans();
  assert.equal(spans.length, 200);
  const roots = spans.filter((s) => s.name === 'root').map((s) => s.spanContext().traceId);
  assert.deepEqual(roots, [...new Set(roots)].sort());
  for (const id of roots) assert.ok(timeOf(id) >= before && timeOf(id) <= after, id);
  for (let i = 0; i < spans.length; i += 2) {
    assert.equal(spans[i].spanContext().traceId, spans[i + 1].spanContext().traceId);
    assert.equal(spans[i].parentSpanContext.spanId, spans[i + 1].spanContext().spanId);
  }
});

it('the SDK samples a ratio of the traces', () => {
  for (const [ratio, count] of [[0, 0], [0.25, 1000], [1, 4000]]) {
    const [exporter, tracer] = provider({ sampler: new TraceIdRatioBasedSampler(ratio) });
    for (let i = 0; i < 4000; i++) tracer.startSpan('root', {}, ROOT_CONTEXT).end();
    const sampled = exporter.getFinishedSpans().length;
    assert.ok(Math.abs(sampled - count) <= 7 * Math.sqrt(4000 * ratio * (1 - ratio)), `${sampled} of 4000 at ${ratio}`);
  }
});

it('costs at most 1.5 times the SDK\'s generator', (t) => {
  const { sdk, ours } = costs();
  for (const method of Object.keys(sdk)) {
    const ratio = ours[method] / sdk[method];
    t.diagnostic(`${method}: ${ours[method].toFixed(0)} ns, the SDK's ${sdk[method].toFixed(0)} ns, ratio ${ratio.toFixed(2)}`);
    assert.ok(ratio <= 1.5, `${method}: ${ratio}`);
  }
});
