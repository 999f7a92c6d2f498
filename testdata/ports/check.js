// Checks an implementation of docs/format.md against testdata/format.json, in Node or a browser.

const high = (id) => BigInt('0x' + id.slice(0, 16));
const hex = (number) => number.toString(16).padStart(16, '0');
const bytesOf = (text) => Uint8Array.from(text.match(/../g), (x) => parseInt(x, 16));

const getRandomValues = crypto.getRandomValues.bind(crypto); // a port may see another one
const random64 = () => getRandomValues(new BigUint64Array(1))[0];

// check resolves to the first vector that does not hold, or undefined. The functions of an
// implementation:
//
//	traceID(unixMs, sequence, low)   timeOf(text)   bounds(unixMs)   notBefore(text, slack, now)
//	shared(), which returns a function of a clock that returns a clear half, for many threads
//	generator(last, clock, draw), which returns { traceID(), spanID() }, or undefined if its
//	state cannot begin at last
//	cipher(key, plaintext)   randflake(secret, unixSeconds, node, sequence)
//	wordOf(secret, id)   parts(word)   textOf(id)   agree(secret, traceID)
//	derive(secret, unixMs, key), which returns or resolves to [traceID, spanID]
//
// Numbers are BigInts, IDs text, keys and blocks bytes. Missing functions are not checked.
export async function check(port, format) {
  for (const [part, holds] of Object.entries(rules)) {
    if (!holds.needs.every((name) => port[name])) continue;
    for (const v of Array.isArray(format[part]) ? format[part] : [format[part]]) {
      let answer;
      try {
        answer = await holds(port, v, format);
      } catch (err) {
        answer = err;
      }
      if (answer !== true) return `${part}: ${v.name ?? JSON.stringify(v)}: ${answer}`;
    }
  }
}

// rule is a function of an implementation and a vector that returns whether the vector holds.
const rule = (needs, holds) => Object.assign(holds, { needs: needs.split(' ') });

async function throws(f, message) {
  try {
    return `not refused: ${await f()}`;
  } catch (err) {
    return !message || new RegExp(message).test(err.message) || err.message;
  }
}

const same = (got, want) =>
  JSON.stringify(got) === JSON.stringify(want) ||
  `${JSON.stringify(got)}, want ${JSON.stringify(want)}`;
const millis = (time) => (time === null ? null : Number(time));
const numbers = (...list) => list.map(BigInt);

const rules = {
  ids: rule('traceID timeOf', (p, v) => {
    const made = same(p.traceID(...numbers(v.unix_ms, v.sequence, '0x' + v.low)), v.id);
    return made === true ? same(Number(p.timeOf(v.id)), v.unix_ms) : made;
  }),
  no_id: rule('traceID', (p, v) =>
    throws(() => p.traceID(...numbers(v.unix_ms, v.sequence, '0x' + v.low)), v.wrong),
  ),
  read: rule('timeOf', (p, v) => same(millis(p.timeOf(v.id)), v.unix_ms)),
  kinds: rule('notBefore', (p, v, format) =>
    same(millis(p.notBefore(v.id, 3600000n, BigInt(format.kinds_now_ms))), v.not_before_ms),
  ),
  bound: rule('notBefore', (p, v) =>
    same(millis(p.notBefore(v.id, ...numbers(v.slack_ms, v.now_ms))), v.not_before_ms),
  ),
  malformed: rule('timeOf', async (p, text) => {
    const readers = {
      timeOf: () => p.timeOf(text),
      notBefore: () => p.notBefore(text, 0n, 1n << 41n),
      agree: () => p.agree(new Uint8Array(16), text),
    };
    for (const [name, read] of Object.entries(readers)) {
      const refused = !p[name] || (await throws(read));
      if (refused !== true) return `${name}: ${refused}`;
    }
    return true;
  }),
  bounds: rule('bounds', (p, v) => same(p.bounds(BigInt(v.unix_ms)), [v.min, v.max])),
  cipher: rule('cipher', (p, v) =>
    same(p.cipher(bytesOf(v.key), bytesOf(v.plaintext)), v.ciphertext),
  ),
  randflake: rule('randflake wordOf parts textOf', (p, v) => {
    const secret = bytesOf(v.secret);
    const fields = numbers(v.unix_s, v.node, v.sequence);
    const word = p.wordOf(secret, BigInt('0x' + v.id));
    return same(
      [
        p.randflake(secret, ...fields),
        hex(word),
        p.textOf(BigInt('0x' + v.id)),
        p.parts(word).map(Number),
      ],
      [v.id, v.word, v.text, fields.map(Number)],
    );
  }),
  no_randflake: rule('randflake', (p, v) =>
    throws(
      () => p.randflake(new Uint8Array(16), ...numbers(v.unix_s, v.node, v.sequence)),
      v.wrong,
    ),
  ),
  halves: rule('agree', (p, v) => same(p.agree(bytesOf(v.secret), v.id), v.agree)),
  stopped: rule('shared', (p, v) => {
    const next = p.shared();
    let now = BigInt(v.unix_ms);
    let meanwhile;
    const stopped = next(() => {
      const before = now;
      now = BigInt(v.meanwhile_ms);
      meanwhile ??= next(() => now);
      return before;
    });
    return same([meanwhile, stopped].map(hex), v.clears);
  }),
  random: rule('generator', (p, v, format) => {
    const draws = v.draws.map((x) => BigInt('0x' + x));
    const ids = p.generator(
      0n,
      () => BigInt(format.ids[0].unix_ms),
      () => draws.shift() ?? (1n << 64n) - 1n,
    );
    return same(
      v.halves.map((_, i) => (i % 2 ? ids.spanID() : ids.traceID().slice(16))),
      v.halves,
    );
  }),
  generator: rule('generator', (p, v) => {
    let now;
    const generator = p.generator(BigInt('0x' + (v.last ?? '0')), () => BigInt(now), random64);
    if (!generator) return true;
    const { traceID, spanID } = generator;
    for (const [i, step] of v.steps.entries()) {
      now = step.unix_ms;
      const ids = Array.from({ length: step.n }, traceID);
      for (const [j, id] of ids.entries()) {
        if (!/^[0-9a-f]{32}$/.test(id)) return `step ${i}: ${id}`;
        if (step.clear !== null && high(id) !== BigInt('0x' + step.clear) + BigInt(j)) {
          return `step ${i}: ${id.slice(0, 16)} is number ${j} of ${step.clear}`;
        }
      }
      if (step.clear === null && !random128(ids))
        return `step ${i}: not random: ${ids[0]}, ${ids[1]}`;
    }
    const low = Array.from({ length: 64 }, () => traceID().slice(16));
    if (!uniform(low, 64)) return `low halves are not random: ${low[0]}, ${low[1]}`;
    const spans = Array.from({ length: 64 }, spanID);
    const malformed = spans.find((id) => !/^[0-9a-f]{16}$/.test(id));
    if (malformed !== undefined) return `span ID: ${malformed}`;
    return uniform(spans, 64) || `span IDs are not random: ${spans[0]}, ${spans[1]}`;
  }),
  derived: rule('derive', async (p, v) => {
    const derive = () => p.derive(bytesOf(v.secret), BigInt(v.unix_ms), v.key);
    return v.wrong ? throws(derive, v.wrong) : same(await derive(), [v.trace, v.span]);
  }),
  many: rule('generator', (p, v) => {
    const ids = p.generator(0n, () => BigInt(v.unix_ms), random64);
    const halves = [];
    for (let i = 0; i < v.n; i++) halves.push(ids.traceID().slice(16), ids.spanID());
    return scattered(halves.map((half) => BigInt('0x' + half)));
  }),
};

// scattered returns true if no number is there twice, nor a difference of neighbours, as in the
// numbers of a counter. For 200 000 random numbers that fails once in 10^8 runs.
function scattered(numbers) {
  if (!distinct(numbers)) return 'a low half or span ID is there twice';
  for (const lag of [1, 2]) {
    const steps = numbers.slice(lag).map((n, i) => n - numbers[i]);
    if (!distinct(steps)) return 'low halves or span IDs have equal distances';
  }
  return true;
}

// distinct reports whether no two of these numbers are equal modulo 2^64.
export function distinct(numbers) {
  const sorted = BigUint64Array.from(numbers, (n) => BigInt.asUintN(64, n)).sort();
  return sorted.every((n, i) => i === 0 || n !== sorted[i - 1]);
}

// random128 reports whether the halves of these IDs are uniform, and so are their differences.
function random128(ids) {
  const differences = ids.map((id) => hex(high(id) ^ BigInt('0x' + id.slice(16))));
  return uniform(ids, 128) && uniform(differences, 64);
}

// uniform reports whether each bit is 0 in some of these IDs and 1 in others, and no half is there
// twice. For 64 random IDs that fails once in 10^15 runs.
function uniform(ids, bits) {
  const all = ids.map((id) => BigInt('0x' + id));
  const ones = all.reduce((a, b) => a | b);
  const zeros = all.reduce((a, b) => a & b);
  const halves = ids.flatMap((id) => id.match(/.{16}/g));
  return (
    ones === (1n << BigInt(bits)) - 1n && zeros === 0n && new Set(halves).size === halves.length
  );
}
