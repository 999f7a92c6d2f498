import { trace } from '@opentelemetry/api';

const span = trace.getTracer('service').startSpan('root');
span.end();
console.log(span.spanContext().traceId);
