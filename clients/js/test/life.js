// The rows of testdata/life.json, for the client in a folder: node test/life.js FOLDER. Its parent
// sets a Turkish locale, which a process reads when it starts.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { buildSync } from 'esbuild';

// halves returns low halves and span IDs of generators, in turn, as text.
const halves = `(generators, n) => Array.from({ length: n }, () => (
  generators.flatMap((g) => [g.generateSpanId(), g.generateTraceId().slice(16)]))).flat()`;

function assertDistinct(ids, count) {
  assert.equal(ids.length, count);
  assert.equal(new Set(ids).size, count);
}

const getter = { get: (carrier, key) => carrier[key], keys: Object.keys };

// rowsOf returns a test for each row.
export const rowsOf = ({ TraceflakeIdGenerator, XTraceIdPropagator, folder }) => ({
  'two generators': () => {
    const generators = [new TraceflakeIdGenerator(), new TraceflakeIdGenerator()];
    assertDistinct(new Function('generators', `return (${halves})(generators, 5000)`)(generators), 20000);
  },

  async workers() {
    const code = `
      import(${JSON.stringify(pathToFileURL(join(folder, 'traceflake.js')).href)}).then((client) => {
        const ids = (${halves})([new client.TraceflakeIdGenerator()], 2000);
        require('node:worker_threads').parentPort.postMessage(ids);
      });`;
    const made = await Promise.all([1, 2, 3].map(() => new Promise((resolve, reject) => {
      new Worker(code, { eval: true }).on('message', resolve).on('error', reject);
    })));
    assertDistinct(made.flat(), 12000);
  },

  // Node's user-land snapshots (--build-snapshot): each process begins with the same memory.
  'startup snapshot': () => {
    const temporary = mkdtempSync(join(tmpdir(), 'snapshot-'));
    try {
      const file = (name) => join(temporary, name);
      buildSync({
        stdin: {
          contents: `
            const { TraceflakeIdGenerator } = require('./traceflake.js');
            const generators = [new TraceflakeIdGenerator(), new TraceflakeIdGenerator()];
            const halves = ${halves};
            halves(generators, 10);
            require('v8').startupSnapshot.setDeserializeMainFunction(() => {
              console.log(halves(generators, 300).join(' '));
            });`,
          resolveDir: folder,
        },
        bundle: true, platform: 'node', outfile: file('main.js'),
      });
      const node = (...args) => execFileSync(process.execPath, ['--snapshot-blob', file('blob'), ...args], { stdio: ['ignore', 'pipe', 'ignore'] }).toString();
      node('--build-snapshot', file('main.js'));
      assertDistinct((node() + ' ' + node()).trim().split(/\s+/), 2400);
    } finally {
      rmSync(temporary, { recursive: true });
    }
  },

  'clock steps': () => {
    const { now } = Date;
    let millis = 1800000000000;
    Date.now = () => millis;
    try {
      const g = new TraceflakeIdGenerator();
      const clear = () => BigInt('0x' + g.generateTraceId().slice(0, 16));
      const first = clear();
      millis -= 1999;
      assert.equal(clear(), first + 1n);
      millis -= 2;
      assert.equal((clear() >> 23n) + 1577836800000n, BigInt(millis));
    } finally {
      Date.now = now;
    }
  },

  'Turkish locale': () => {
    assert.equal('I'.toLocaleLowerCase(Intl.DateTimeFormat().resolvedOptions().locale), '\u0131');
    const id = '32D1F0A9C8000005A1B2C3D4E5F60718';
    const p = new XTraceIdPropagator({ b3Encoding: 'SINGLE' });
    assert.deepEqual(p.fields(), ['x-trace-id', 'b3']);
    const context = p.extract(ROOT_CONTEXT, { 'x-trace-id': id, b3: '00f067aa0ba902b7-53995c3f42cd8ad8-1' }, getter);
    assert.equal(trace.getSpanContext(context).traceId, id.toLowerCase());
  },

  'empty settings': () => {
    for (const empty of [undefined, null, '']) {
      const options = Object.fromEntries(Object.keys(WRONG).map((name) => [name, empty]));
      assert.deepEqual(new XTraceIdPropagator(options), new XTraceIdPropagator());
    }
  },

  'misspelt settings': () => {
    for (const [name, value] of Object.entries(WRONG)) {
      assert.throws(() => new XTraceIdPropagator({ [name]: value }), { name: 'TypeError', message: new RegExp(`${name} is "${value}"`) });
    }
    for (const name of ['b3Encodign', 'constructor']) {
      assert.throws(() => new XTraceIdPropagator({ [name]: 'single' }), { name: 'TypeError', message: new RegExp(name) });
    }
  },
});

const WRONG = { header: 'b3', b3Encoding: 'x', b3TraceId64: 'yes', deferredSampled: 'yes', dashes: 'yes' };

if (process.argv[2]) {
  const load = (name) => import(pathToFileURL(join(process.argv[2], name)).href);
  const client = { ...await load('traceflake.js'), ...await load('propagator.js'), folder: process.argv[2] };
  for (const [name, check] of Object.entries(rowsOf(client))) {
    try {
      await check();
    } catch (err) {
      console.log(`${name}: ${err}`);
      process.exitCode = 1;
    }
  }
}
