// The cost of an ID relative to the SDK's generator: npm run cost
import { fileURLToPath } from 'node:url';
import { RandomIdGenerator } from '@opentelemetry/sdk-trace-node';
import { buildSync } from 'esbuild';
import { TraceflakeIdGenerator } from '../traceflake.js';

// A bundle for browsers of 2017, without private fields and whatever else is younger.
const { outputFiles: [{ text }] } = buildSync({
  entryPoints: [fileURLToPath(new URL('../traceflake.js', import.meta.url))], bundle: true, minify: true,
  format: 'esm', target: 'es2017', write: false,
});
const es2017 = await import('data:text/javascript,' + encodeURIComponent(text));

// costs returns nanoseconds per ID: the least of many interleaved rounds, each so short that other
// processes leave some of them alone, and of earlier ones.
export function costs(least = { sdk: {}, ours: {}, es2017: {} }, rounds = 5000, n = 500) {
  const generators = { sdk: new RandomIdGenerator(), ours: new TraceflakeIdGenerator(), es2017: new es2017.TraceflakeIdGenerator() };
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const least = costs();
  for (const name of ['ours', 'es2017']) {
    for (const method of Object.keys(least[name])) least[name][method + ' / sdk'] = +(least[name][method] / least.sdk[method]).toFixed(2);
  }
  console.table(least);
}
