import { CompositePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import { registerInstrumentations } from '@opentelemetry/instrumentation';
import { FetchInstrumentation } from '@opentelemetry/instrumentation-fetch';
import { WebTracerProvider } from '@opentelemetry/sdk-trace-web';
import { TraceflakeIdGenerator } from '@traceflake/otel';
import { XTraceIdPropagator } from '@traceflake/otel/propagator';

new WebTracerProvider({ idGenerator: new TraceflakeIdGenerator() }).register({
  propagator: new CompositePropagator({
    propagators: [new W3CTraceContextPropagator(), new XTraceIdPropagator({ b3Encoding: 'none' })],
  }),
});
registerInstrumentations({
  instrumentations: [new FetchInstrumentation({ propagateTraceHeaderCorsUrls: [/\/api\//] })],
});
