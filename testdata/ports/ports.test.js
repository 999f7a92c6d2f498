// The vectors hold for the code of docs/format.md and port.js, and for none of the wrong ports.
import assert from 'node:assert/strict';
import { createHmac, hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { check, distinct } from './check.js';
import { adapt } from './client.js';
import * as wrong from './wrong.js';

const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');

const format = JSON.parse(read('../format.json'));
const page = [...read('../../docs/format.md').matchAll(/```js\n(.*?)```/gs)].map(
  ([, code]) => code,
);
const port = [...page, read('port.js')].join('\n');
const client = ['traceflake.js', 'derive.js']
  .map((name) => read('../../clients/js/' + name))
  .join('\n')
  .replace(/^import .*$/gm, '')
  .replaceAll('export ', '');

const sha256 = {
  hkdf: (secret, info) => new Uint8Array(hkdfSync('sha256', secret, '', info, 32)),
  hmac: (key, message) => [...createHmac('sha256', key).update(Uint8Array.from(message)).digest()],
};

const more = 300; // words of state, for ports that need more than the last clear half

// load runs the source of a port.
function load(source) {
  const port = new Function(
    source +
      `
    return { traceID, timeOf, notBefore, bounds, wordOf, parts, textOf, agree, derive, generator,
      randflake: randflakeID,
      shared(state = new BigUint64Array(${more})) { return (clock) => nextClear(state, clock); },
      cipher(key, plaintext) {
        const wordsOf = (b) => Array.from({ length: b.length / 2 }, (_, i) => (b[2 * i] << 8) | b[2 * i + 1]);
        return encrypt(expand(wordsOf(key)), wordsOf(plaintext)).map((w) => hex(w, 4)).join('');
      } };`,
  )();
  return {
    ...port,
    derive: (secret, unixMs, text) => port.derive(secret, unixMs, text, sha256),
    generator(last, clock, draw) {
      const state = new BigUint64Array(more);
      state[0] = last;
      return port.generator(state, clock, draw);
    },
  };
}

const run = (source) =>
  new Function(
    source +
      '\nreturn { TraceflakeIdGenerator, deriveSpanId, deriveTraceId, notBefore, timeOf, traceIdAt };',
  )();
const loadClient = (source) =>
  adapt(run(source), (millis, sequence) =>
    run(
      source
        .replace('let millis = 0;', `let millis = ${millis};`)
        .replace('let sequence = 0;', `let sequence = ${sequence};`),
    ),
  );

// threads returns what is wrong if many threads share a generator, and its clock shows one time or
// moves while they read it.
async function threads(source) {
  return (await together(source, format.threads)) ?? (await together(source, format.moving));
}

const shared = (Words, length) =>
  new Words(new SharedArrayBuffer(length * Words.BYTES_PER_ELEMENT));

async function together(source, v) {
  const data = { state: shared(BigUint64Array, more), start: shared(Int32Array, 2), v };
  const code = `${source}
    const { parentPort, workerData: { state, start, v } } = require('node:worker_threads');
    const random = new BigUint64Array(1024);
    let next = random.length;
    const draw = () => {
      if (next === random.length) {
        crypto.getRandomValues(random);
        next = 0;
      }
      return random[next++];
    };
    const reading = () => Math.floor(Atomics.add(start, 1, 1) / (v.readings ?? 1));
    const ids = generator(state, () => BigInt(v.unix_ms + reading() * (v.step_ms ?? 0)), draw);
    Atomics.add(start, 0, 1);
    while (Atomics.load(start, 0) < v.threads); // all begin at once
    const made = new BigUint64Array(3 * v.n);
    for (let i = 0; i < made.length; i += 3) {
      const id = ids.traceID();
      made.set([id.slice(0, 16), id.slice(16), ids.spanID()].map((half) => BigInt('0x' + half)), i);
    }
    parentPort.postMessage(made);`;
  const made = await Promise.all(
    Array.from(
      { length: v.threads },
      () =>
        new Promise((resolve, reject) => {
          new Worker(code, { eval: true, workerData: data })
            .on('message', resolve)
            .on('error', reject);
        }),
    ),
  );
  const count = v.threads * v.n;
  const all = made.flatMap((halves) => [...halves]);
  const clears = all.filter((_, i) => i % 3 === 0);
  const halves = all.filter((_, i) => i % 3);
  const name = v.step_ms ? 'moving' : 'threads';
  if (!distinct(clears)) return `${name}: a clear half is there twice`;
  if (v.clear && !clears.includes(BigInt('0x' + v.clear) + BigInt(count - 1)))
    return `${name}: numbers are missing`;
  if (!distinct(halves)) return `${name}: a low half or span ID is there twice`;
}

// changed replaces texts in a source.
function changed(source, name, from, to, ...more) {
  const mistake = source.replaceAll(from, to);
  assert.notEqual(mistake, source, `${name}: nothing was replaced`);
  return more.length ? changed(mistake, name, ...more) : mistake;
}

it('the code of the page and the client are right', async () => {
  assert.equal(page.length, 1);
  assert.equal(await check(loadClient(client), format), undefined);
  assert.equal(await check(load(port), format), undefined);
  assert.equal(await threads(port), undefined);
});

it('a lock around both is right', async () => {
  const locked = changed(port, ...wrong.lock);
  const { shared, ...others } = load(locked); // a second call within the first would wait for ever
  assert.equal(await check(others, format), undefined);
  assert.equal(await threads(locked), undefined);
});

for (const [kind, source, loads, list] of [
  ['port', port, load, wrong.port],
  ['client', client, loadClient, wrong.client],
]) {
  it(`wrong ${kind}s are caught`, async (t) => {
    assert.equal(new Set(list.map(([name]) => name)).size, list.length);
    const by = {};
    for (const [name, ...changes] of list) {
      const mistake = changed(source, name, ...changes);
      const caught =
        (await check(loads(mistake), format)) ??
        (kind === 'port' ? await threads(mistake) : undefined);
      assert.ok(caught, `${name}: no vector catches it`);
      const part = caught.split(':')[0];
      by[part] = (by[part] ?? 0) + 1;
    }
    t.diagnostic(`${list.length} wrong ${kind}s, caught by ${JSON.stringify(by)}`);
  });
}
