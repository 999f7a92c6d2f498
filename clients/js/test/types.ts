// The types fit those of the SDKs: tsc compiles this file.
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { type IdGenerator, WebTracerProvider } from '@opentelemetry/sdk-trace-web';
import { TraceflakeIdGenerator, notBefore, timeOf, traceIdAt } from '@traceflake/otel';
import { propagation } from '@opentelemetry/api';
import { XTraceIdPropagator } from '@traceflake/otel/propagator';
import { deriveSpanId, deriveTraceId } from '@traceflake/otel/derive';

const idGenerator: IdGenerator = new TraceflakeIdGenerator();
new NodeTracerProvider({ idGenerator });
new WebTracerProvider({ idGenerator });
const id: string = traceIdAt(Date.now(), 0, '0123456789abcdef');
const bounds: (Date | null)[] = [timeOf(id), notBefore(id), notBefore(id, 5000)];
// @ts-expect-error a trace ID is a string
timeOf(7);
const derived: Promise<string>[] = [deriveTraceId('', 0, ''), deriveSpanId('', 0, '')];
propagation.setGlobalPropagator(new XTraceIdPropagator({ b3Encoding: 'single', dashes: true }));
// @ts-expect-error there is no such encoding
new XTraceIdPropagator({ b3Encoding: 'b3' });
export { bounds, derived };
