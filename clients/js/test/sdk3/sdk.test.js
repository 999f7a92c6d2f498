import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { TraceflakeIdGenerator, timeOf } from '@traceflake/otel';

function check(tracer) {
  const before = Date.now();
  const ids = Array.from({ length: 100 }, () => tracer.startSpan('root', {}, ROOT_CONTEXT).spanContext().traceId);
  assert.deepEqual(ids, [...new Set(ids)].sort());
  for (const id of ids) assert.ok(timeOf(id) >= before && timeOf(id) <= Date.now(), id);
}

it('TracerProvider starts ordered traces', () => {
  check(new TracerProvider({ idGenerator: new TraceflakeIdGenerator() }).getTracer('test'));
});

it('NodeSDK starts ordered traces', async () => {
  const sdk = new NodeSDK({ idGenerator: new TraceflakeIdGenerator() });
  sdk.start();
  check(trace.getTracer('test'));
  await sdk.shutdown();
});
