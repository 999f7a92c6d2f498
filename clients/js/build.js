// Writes the CommonJS form of the modules and its types: npm run build
import { copyFileSync } from 'node:fs';
import { buildSync } from 'esbuild';

const modules = ['traceflake', 'derive', 'propagator'];

buildSync({
  entryPoints: modules.map((name) => name + '.js'),
  bundle: true, outdir: '.', outExtension: { '.js': '.cjs' },
  external: ['@opentelemetry/api'], format: 'cjs', platform: 'node', target: 'es2020',
});
for (const name of modules) copyFileSync(name + '.d.ts', name + '.d.cts');
