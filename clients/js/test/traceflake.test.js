import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, it, mock } from 'node:test';
import * as esm from '@traceflake/otel';
import { check } from '../../../testdata/ports/check.js';
import { adapt } from '../../../testdata/ports/client.js';
import * as derive from '@traceflake/otel/derive';

const require = createRequire(import.meta.url);
const cjs = require('@traceflake/otel');
const { TraceflakeIdGenerator, notBefore, timeOf, traceIdAt } = esm;
const format = JSON.parse(readFileSync(new URL('../../../testdata/format.json', import.meta.url)));
const noon = Date.UTC(2026, 2, 14, 12);

// at runs f with a clock that shows what set was last called with. A mock of node:test would
// remember each of millions of calls.
function at(millis, f) {
  const { now } = Date;
  Date.now = () => millis;
  try {
    return f((other) => { millis = other; });
  } finally {
    Date.now = now;
  }
}

const high = (id) => BigInt('0x' + id.slice(0, 16));

describe('vectors', () => {
  const forms = { 'ES module': [esm, derive], CommonJS: [cjs, require('@traceflake/otel/derive')] };
  for (const [form, [client, derived]] of Object.entries(forms)) {
    it(form, async () => {
      assert.equal(await check(adapt({ ...client, ...derived }), format), undefined);
      assert.deepEqual(Object.keys(derived).sort(), ['deriveSpanId', 'deriveTraceId']);
      assert.deepEqual(Object.keys(client).sort(), ['TraceflakeIdGenerator', 'notBefore', 'timeOf', 'traceIdAt']);
    });
  }
  it('the forms are two', () => assert.notEqual(cjs.timeOf, esm.timeOf));
});

describe('functions', () => {
  it('refuse what is not text', () => {
    for (const id of [undefined, null, 7, new String('16c6e867fa0000050123456789abcdef')]) {
      assert.throws(() => timeOf(id), TypeError);
      assert.throws(() => notBefore(id), TypeError);
    }
  });
  it('truncate a time to its millisecond, and refuse what is not a number', () => {
    assert.equal(timeOf(traceIdAt(noon + 0.9, 0, '0123456789abcdef')).getTime(), noon);
    for (const parts of [[NaN, 0], [noon, 0.5], [noon, NaN], [undefined, 0], [noon, undefined]]) {
      assert.throws(() => traceIdAt(...parts, '0123456789abcdef'), RangeError);
    }
    for (const low of ['0123456789abcde', '0123456789ABCDEF', '0123456789abcdef ', undefined]) {
      assert.throws(() => traceIdAt(noon, 0, low), RangeError);
    }
  });
  it('subtract the slack; one that gives no time gives no bound', () => {
    const id = traceIdAt(noon, 0, '0123456789abcdef');
    for (const [slack, want] of [[undefined, noon - 3600000], [5, noon - 5], [0, noon], [-5, noon]]) {
      assert.equal(notBefore(id, slack).getTime(), want);
    }
    for (const slack of [NaN, Infinity, 1e17, 'an hour']) assert.equal(notBefore(id, slack), null);
  });
});

describe('generator', () => {
  it('works detached', () => {
    const { generateTraceId, generateSpanId } = new TraceflakeIdGenerator();
    assert.match(generateTraceId(), /^[0-9a-f]{32}$/);
    assert.match(generateSpanId(), /^[0-9a-f]{16}$/);
    assert.match(at(0, generateTraceId), /^[0-9a-f]{32}$/);
  });

  it('refuses subclasses that override its methods', () => {
    for (const name of ['generateTraceId', 'generateSpanId']) {
      class Own extends TraceflakeIdGenerator {}
      Own.prototype[name] = () => 'own';
      assert.throws(() => new Own(), /TypeError.*wrap a generator/);
      class Field extends TraceflakeIdGenerator {
        [name] = () => 'own';
      }
      assert.throws(() => new Field(), TypeError);
      assert.throws(() => { new TraceflakeIdGenerator()[name] = () => 'own'; }, TypeError);
    }
    class Named extends TraceflakeIdGenerator {
      name = 'ours';
    }
    assert.match(new Named().generateTraceId(), /^[0-9a-f]{32}$/);
  });

  it('needs crypto, and says at once what to do without', () => {
    const { crypto } = globalThis;
    for (const value of [undefined, {}]) {
      Object.defineProperty(globalThis, 'crypto', { value, configurable: true, writable: true });
      try {
        assert.throws(() => new TraceflakeIdGenerator(), /getRandomValues.*react-native-get-random-values/);
      } finally {
        Object.defineProperty(globalThis, 'crypto', { value: crypto, configurable: true, writable: true });
      }
    }
  });

  it('carries a used up sequence into the next millisecond', () => at(noon, () => {
    const g = new TraceflakeIdGenerator();
    for (let i = 1; i < 2 ** 23; i++) g.generateTraceId();
    const last = g.generateTraceId();
    assert.equal(high(last) & 0x7fffffn, 0x7fffffn);
    const next = g.generateTraceId();
    assert.equal(high(next), high(last) + 1n);
    assert.equal(timeOf(next).getTime(), noon + 1);
  }));

  it('uses each random word once, in order, and skips zeros', () => {
    let word = 0;
    const draw = mock.method(crypto, 'getRandomValues', (words) => {
      for (let i = 0; i < words.length; i++) words[i] = word++ < 4 ? 0 : word;
      return words;
    });
    const math = mock.method(Math, 'random', () => assert.fail('Math.random is not for IDs'));
    try {
      const g = new TraceflakeIdGenerator();
      for (let i = 5; i < 5000; i += 4) {
        assert.equal(g.generateSpanId(), (BigInt(i) << 32n | BigInt(i + 1)).toString(16).padStart(16, '0'));
        assert.equal(g.generateTraceId().slice(16), (BigInt(i + 2) << 32n | BigInt(i + 3)).toString(16).padStart(16, '0'));
      }
    } finally {
      draw.mock.restore();
      math.mock.restore();
    }
  });

  it('has 64 uniform bits in the low half', () => {
    const g = new TraceflakeIdGenerator();
    const n = 20000;
    const ones = new Array(64).fill(0);
    for (let i = 0; i < n; i++) {
      const low = BigInt('0x' + g.generateTraceId().slice(16));
      for (let bit = 0; bit < 64; bit++) ones[bit] += Number(low >> BigInt(bit) & 1n);
    }
    for (const [bit, count] of ones.entries()) {
      assert.ok(Math.abs(count - n / 2) < 7 * Math.sqrt(n / 4), `bit ${bit}: ${count} of ${n}`); // 7 deviations
    }
  });
});
