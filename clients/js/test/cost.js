// The cost of an ID beside that of the SDK's generator: node test/cost.js
import { fileURLToPath } from 'node:url';
import { RandomIdGenerator } from '@opentelemetry/sdk-trace-node';
import { TraceflakeIdGenerator } from '../traceflake.js';

// costs returns nanoseconds per ID: the least of many interleaved rounds, each so short that other
// processes leave some of them alone.
export function costs(rounds = 1000, n = 500) {
  const generators = { sdk: new RandomIdGenerator(), ours: new TraceflakeIdGenerator() };
  const least = { sdk: {}, ours: {} };
  let sum = 0;
  for (let i = 0; i < rounds; i++) {
    for (const [name, g] of Object.entries(generators)) {
      for (const method of ['generateTraceId', 'generateSpanId']) {
        const start = process.hrtime.bigint();
        // Reading a digit makes V8 flatten a string that was joined.
        for (let j = 0; j < n; j++) sum += g[method]().charCodeAt(15);
        const ns = Number(process.hrtime.bigint() - start) / n;
        least[name][method] = Math.min(least[name][method] ?? Infinity, ns);
      }
    }
  }
  if (!sum) throw new Error('no ID was made');
  return least;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.table(costs(5000));
