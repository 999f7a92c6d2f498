import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it, mock } from 'node:test';
import { TraceflakeIdGenerator, notBefore, timeOf, traceIdAt } from '../traceflake.js';

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
  for (const v of format.ids) {
    it(v.name, () => {
      assert.equal(traceIdAt(v.unix_ms, v.sequence, v.low), v.id);
      assert.equal(timeOf(v.id).getTime(), v.unix_ms);
    });
  }
  for (const v of format.no_id) {
    it(v.name, () => assert.throws(() => traceIdAt(v.unix_ms, v.sequence, v.low), { name: 'RangeError', message: new RegExp(v.wrong) }));
  }
  for (const text of [...format.malformed, undefined, null, 7]) {
    it(`${JSON.stringify(text)} is no ID`, () => {
      assert.throws(() => timeOf(text), TypeError);
      assert.throws(() => notBefore(text), TypeError);
    });
  }
  for (const v of format.bounds) {
    it(`bounds: ${v.name}`, () => {
      assert.equal(timeOf(v.max).getTime(), Math.min(Math.max(v.unix_ms, format.epoch_ms), format.epoch_ms + 2 ** 41 - 1));
      if (timeOf(v.max).getTime() > format.epoch_ms) assert.deepEqual(timeOf(v.min), timeOf(v.max));
    });
  }
  it('order', () => assert.deepEqual(format.order.toSorted(), format.order));
  for (const v of format.kinds) {
    it(`not before: ${v.name}`, () => at(format.kinds_now_ms, () => {
      assert.equal(notBefore(v.id)?.getTime() ?? null, v.not_before_ms);
    }));
  }
  it('slack', () => {
    const id = traceIdAt(noon, 0, '0123456789abcdef');
    assert.equal(notBefore(id, 5).getTime(), noon - 5);
    assert.equal(notBefore(id, -5).getTime(), noon);
  });
});

describe('generator', () => {
  it('has the time of the clock and counts within a millisecond', () => at(noon, (set) => {
    const g = new TraceflakeIdGenerator();
    for (const ms of [0, 0, 1, 1, 1, 511, 512, 86400000]) {
      set(noon + ms);
      assert.equal(timeOf(g.generateTraceId()).getTime(), noon + ms);
    }
    const ids = Array.from({ length: 1000 }, g.generateTraceId); // detached
    assert.deepEqual(ids.map(high), ids.map((_, i) => high(ids[0]) + BigInt(i)));
  }));

  it('grows when the clock steps back by up to two seconds', () => at(noon, (set) => {
    const g = new TraceflakeIdGenerator();
    let last = g.generateTraceId();
    for (const ms of [-1, -2000, -1999, 0, 1, -1000, 2, -1998, 3]) {
      set(noon + ms);
      const id = g.generateTraceId();
      assert.ok(high(id) > high(last), `${ms} ms: ${id} after ${last}`);
      last = id;
    }
  }));

  it('follows a clock that steps back by more', () => at(noon, (set) => {
    const g = new TraceflakeIdGenerator();
    const seen = new Set([g.generateTraceId()]);
    for (const ms of [-2001, -86400000, -2 * 86400000]) {
      set(noon + ms);
      for (let i = 0; i < 10; i++) {
        const id = g.generateTraceId();
        assert.equal(timeOf(id).getTime(), noon + ms);
        seen.add(id);
      }
    }
    set(noon); // the same milliseconds once more
    for (let i = 0; i < 10; i++) seen.add(g.generateTraceId());
    assert.equal(seen.size, 41);
  }));

  it('carries a used up sequence into the next millisecond', () => at(noon, () => {
    const g = new TraceflakeIdGenerator();
    for (let i = 1; i < 2 ** 23; i++) g.generateTraceId();
    const last = g.generateTraceId();
    assert.equal(high(last) & 0x7fffffn, 0x7fffffn);
    const next = g.generateTraceId();
    assert.equal(high(next), high(last) + 1n);
    assert.equal(timeOf(next).getTime(), noon + 1);
  }));

  for (const year of [1970, 2019, 2090]) {
    it(`makes random trace IDs with a clock in ${year}`, () => at(Date.UTC(year, 0), () => {
      const g = new TraceflakeIdGenerator();
      const ids = Array.from({ length: 64 }, g.generateTraceId);
      for (const id of ids) assert.match(id, /^[0-9a-f]{32}$/);
      assert.equal(new Set(ids.map((id) => id.slice(0, 8))).size, 64); // equal ones: 5 in 10 million runs
    }));
  }

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
