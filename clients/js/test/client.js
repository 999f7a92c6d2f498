// What TestBrowser of integration/collector runs in Chromium.
import { defaultTextMapSetter, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { CompositePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import { InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-web';
import { check } from '../../../testdata/ports/check.js';
import { adapt } from '../../../testdata/ports/client.js';
import * as derive from '../derive.js';
import { XTraceIdPropagator } from '../propagator.js';
import * as traceflake from '../traceflake.js';

const { TraceflakeIdGenerator, notBefore } = traceflake;

export function client(TracerProvider) {
  const exporter = new InMemorySpanExporter();
  const tracer = new TracerProvider({
    idGenerator: new TraceflakeIdGenerator(),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  }).getTracer('client');
  return {
    // vectors returns the first vector that does not hold here, if any.
    vectors: async (format) => await check(adapt({ ...traceflake, ...derive }), format) ?? '',

    // roots returns the trace IDs of n root spans.
    roots: (n) => Array.from({ length: n }, () => {
      const span = tracer.startSpan('root', {}, ROOT_CONTEXT);
      span.end();
      return span.spanContext().traceId;
    }),

    // request sends a request within a root span, with traceparent, x-trace-id and B3 in an
    // encoding. It returns the IDs of the spans as they are exported, the trace ID of the response,
    // and the bound of the trace.
    async request(url, b3Encoding) {
      const propagator = new CompositePropagator({
        propagators: [new W3CTraceContextPropagator(), new XTraceIdPropagator({ b3Encoding })],
      });
      exporter.reset();
      const root = tracer.startSpan('request', {}, ROOT_CONTEXT);
      const { traceId } = root.spanContext();
      const context = trace.setSpan(ROOT_CONTEXT, root);
      const headers = {};
      propagator.inject(context, headers, defaultTextMapSetter);
      const response = await fetch(url, { headers });
      tracer.startSpan('read', {}, context).end();
      root.end();
      const [child, sent] = exporter.getFinishedSpans().map((s) => s.spanContext());
      return {
        trace: sent.traceId, span: sent.spanId, child: child.traceId,
        response: response.headers.get('x-trace-id'), notBefore: notBefore(traceId, 1000).getTime(),
      };
    },
  };
}
