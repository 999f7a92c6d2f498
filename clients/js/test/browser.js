// What integration/demo runs in Chromium, bundled: the client with OpenTelemetry's SDK for browsers.
import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { InMemorySpanExporter, SimpleSpanProcessor, WebTracerProvider } from '@opentelemetry/sdk-trace-web';
import { TraceflakeIdGenerator, notBefore, timeOf, traceIdAt } from '../traceflake.js';

const exporter = new InMemorySpanExporter();
const tracer = new WebTracerProvider({
  idGenerator: new TraceflakeIdGenerator(),
  spanProcessors: [new SimpleSpanProcessor(exporter)],
}).getTracer('browser');

globalThis.client = {
  // vectors returns the vectors that do not hold in this browser.
  vectors: (format) => format.ids.filter((v) => traceIdAt(v.unix_ms, v.sequence, v.low) !== v.id || timeOf(v.id).getTime() !== v.unix_ms),

  // roots returns the trace IDs of n root spans.
  roots: (n) => Array.from({ length: n }, () => {
    const span = tracer.startSpan('root', {}, ROOT_CONTEXT);
    span.end();
    return span.spanContext().traceId;
  }),

  // request sends a request within a root span. It returns the span as it is exported, and the
  // trace ID of the response.
  async request(url) {
    exporter.reset();
    const root = tracer.startSpan('request', {}, ROOT_CONTEXT);
    const { traceId, spanId, traceFlags } = root.spanContext();
    const response = await fetch(url, {
      headers: { 'x-trace-id': traceId, 'X-B3-TraceId': traceId, 'X-B3-SpanId': spanId, 'X-B3-Sampled': String(traceFlags & 1) },
    });
    tracer.startSpan('read', {}, trace.setSpan(ROOT_CONTEXT, root)).end();
    root.end();
    const spans = exporter.getFinishedSpans();
    return {
      trace: spans[1].spanContext().traceId, span: spans[1].spanContext().spanId, child: spans[0].spanContext().traceId,
      response: response.headers.get('x-trace-id'), notBefore: notBefore(traceId, 1000).getTime(),
    };
  },
};
