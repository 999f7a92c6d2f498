import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const folder = fileURLToPath(new URL('..', import.meta.url));
const read = (name) => readFileSync(folder + name, 'utf8');

it('is small and imports nothing', () => {
  const { outputFiles: [{ contents }], metafile } = buildSync({
    entryPoints: [folder + 'traceflake.js'], bundle: true, minify: true, format: 'esm', platform: 'browser',
    write: false, metafile: true,
  });
  assert.ok(contents.length <= 2600, `${contents.length} bytes minified`);
  assert.equal(Object.keys(metafile.inputs).length, 1);
});

it('is packed with nothing but both forms, their types, their page and the license', () => {
  const [{ files }] = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json'], { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] }));
  assert.deepEqual(files.map((f) => f.path).sort(), [
    'LICENSE', 'README.md', 'derive.cjs', 'derive.d.cts', 'derive.d.ts', 'derive.js', 'package.json',
    'propagator.cjs', 'propagator.d.cts', 'propagator.d.ts', 'propagator.js',
    'traceflake.cjs', 'traceflake.d.cts', 'traceflake.d.ts', 'traceflake.js',
  ]);
  assert.equal(read('LICENSE'), read('../../LICENSE'));
});

it('has types that fit the SDKs', () => {
  execFileSync(folder + 'node_modules/.bin/tsc', ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--lib', 'es2022,dom', folder + 'test/types.ts'],
    { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] });
});

it('resolves everywhere: publint and arethetypeswrong find nothing', () => {
  for (const [tool, ...args] of [['publint', '--strict'], ['attw', '--pack', '.']]) {
    try {
      execFileSync(folder + 'node_modules/.bin/' + tool, args, { cwd: folder, stdio: 'pipe' });
    } catch (err) {
      assert.fail(`${tool}: ${err.stdout}`);
    }
  }
});

it('requires nothing but the API for the propagator, and its lock file names no registry', () => {
  const { dependencies, peerDependencies, peerDependenciesMeta } = JSON.parse(read('package.json'));
  assert.deepEqual([dependencies, Object.keys(peerDependencies)], [undefined, ['@opentelemetry/api']]);
  assert.ok(peerDependenciesMeta['@opentelemetry/api'].optional);
  assert.doesNotMatch(read('package-lock.json'), /"resolved"|registry/);
});
