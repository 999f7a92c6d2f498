// The vectors hold for the code of docs/format.md, and for none of the wrong ports.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { check } from './check.js';
import { adapt } from './client.js';
import * as wrong from './wrong.js';

const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');

const format = JSON.parse(read('../format.json'));
const page = [...read('../../docs/format.md').matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code);
const port = [...page, read('port.js')].join('\n');
const client = read('../../clients/js/traceflake.js').replaceAll('export ', '');

// load runs the source of a port.
function load(source) {
  return new Function(source + `
    return { traceID, timeOf, notBefore, bounds, wordOf, parts, textOf, agree, randflake: randflakeID,
      shared(state = new BigUint64Array(1)) { return (clock) => nextClear(state, clock); },
      generator: (last, clock, draw) => generator(new BigUint64Array([last]), clock, draw),
      cipher(key, plaintext) {
        const wordsOf = (b) => Array.from({ length: b.length / 2 }, (_, i) => (b[2 * i] << 8) | b[2 * i + 1]);
        return encrypt(expand(wordsOf(key)), wordsOf(plaintext)).map((w) => hex(w, 4)).join('');
      } };`)();
}

const run = (source) => new Function(source + '\nreturn { TraceflakeIdGenerator, notBefore, timeOf, traceIdAt };')();
const loadClient = (source) => adapt(run(source), (millis, sequence) => run(
  source.replace('let millis = 0;', `let millis = ${millis};`).replace('let sequence = 0;', `let sequence = ${sequence};`)));

// threads returns what is wrong if many threads share a generator's state.
async function threads(source) {
  const { threads: count, n, unix_ms: now, clear } = format.threads;
  const [state, start] = [new BigUint64Array(new SharedArrayBuffer(8)), new Int32Array(new SharedArrayBuffer(4))];
  const code = `${source}
    const { parentPort, workerData: { state, start, n, now } } = require('node:worker_threads');
    Atomics.add(start, 0, 1);
    while (Atomics.load(start, 0) < ${count}); // all begin at once
    parentPort.postMessage(BigUint64Array.from({ length: n }, () => nextClear(state, () => now)));`;
  const made = await Promise.all(Array.from({ length: count }, () => new Promise((resolve, reject) => {
    new Worker(code, { eval: true, workerData: { state, start, n, now: BigInt(now) } }).on('message', resolve).on('error', reject);
  })));
  const all = new Set(made.flatMap((clears) => [...clears]));
  const last = BigInt('0x' + clear) + BigInt(count * n - 1);
  if (all.size !== count * n || !all.has(last)) return `threads: ${all.size} clear halves, want ${count * n} up to ${last}`;
}

it('the code of the page and the client are right', async () => {
  assert.equal(page.length, 2);
  assert.equal(check(loadClient(client), format), undefined);
  assert.equal(check(load(port), format), undefined);
  assert.equal(await threads(port), undefined);
});

for (const [kind, source, loads, list] of [['port', port, load, wrong.port], ['client', client, loadClient, wrong.client]]) {
  it(`wrong ${kind}s are caught`, async (t) => {
    assert.equal(new Set(list.map(([name]) => name)).size, list.length);
    const by = {};
    for (const [name, from, to] of list) {
      const mistake = source.replaceAll(from, to);
      assert.notEqual(mistake, source, `${name}: nothing was replaced`);
      const caught = check(loads(mistake), format) ?? (kind === 'port' ? await threads(mistake) : undefined);
      assert.ok(caught, `${name}: no vector catches it`);
      const part = caught.split(':')[0];
      by[part] = (by[part] ?? 0) + 1;
    }
    t.diagnostic(`${list.length} wrong ${kind}s, caught by ${JSON.stringify(by)}`);
  });
}
