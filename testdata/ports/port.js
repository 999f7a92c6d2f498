// What docs/format.md says in words, as literally as possible. The tests put the page's code in
// front of it. It is written to be read, and to be broken by wrong.js: nobody should use it.

function hex(number, digits) {
  return number.toString(16).padStart(digits, '0');
}

// parse returns the 128-bit number of a trace ID.
function parse(text) {
  if (typeof text !== 'string' || !/^[0-9a-f]{32}$/.test(text)) throw new TypeError('malformed');
  const id = BigInt('0x' + text);
  if (id === 0n) throw new TypeError('malformed: all zeros');
  return id;
}

function traceID(unixMs, sequence, low) {
  const ms = unixMs - EPOCH;
  if (ms < 0n || ms > LAST_MS) throw new RangeError('time');
  const clear = (ms << 23n) | sequence;
  if (sequence < 0n || sequence >= 1n << 23n || clear === 0n) throw new RangeError('sequence');
  if (low <= 0n || low >= 1n << 64n) throw new RangeError('low');
  return hex((clear << 64n) | low, 32);
}

function timeOf(text) {
  const clear = parse(text) >> 64n;
  if (clear === 0n) return null;
  return (clear >> 23n) + EPOCH;
}

function notBefore(text, slack, now) {
  const time = timeOf(text);
  if (time === null || time > now + 3600000n) return null;
  return time - (slack < 0n ? 0n : slack);
}

function bounds(unixMs) {
  let ms = unixMs - EPOCH;
  if (ms < 0n) ms = 0n;
  if (ms > LAST_MS) ms = LAST_MS;
  return [hex(ms << 87n, 32), hex(((ms + 1n) << 87n) - 1n, 32)];
}

// draw returns 64 random bits.
function lowHalf(draw) {
  for (;;) {
    const low = draw();
    if (low !== 0n) return hex(low, 16);
  }
}

// A generator of trace and span IDs without a secret.
function generator(state, clock, draw) {
  return {
    traceID() {
      const clear = nextClear(state, clock);
      const high = clear === null ? lowHalf(draw) : hex(clear, 16);
      return high + lowHalf(draw);
    },
    spanID() {
      return lowHalf(draw);
    },
  };
}

function randflakeID(secret, unixSeconds, node, sequence) {
  const second = unixSeconds - 1730000000n;
  if (second < 0n || second >= 1n << 30n) throw new RangeError('time');
  if (node < 0n || node >= 1n << 17n) throw new RangeError('node');
  if (sequence < 0n || sequence >= 1n << 17n) throw new RangeError('sequence');
  return hex(randflake(secret, unixSeconds, node, sequence), 16);
}

const textOf = (id) => id.toString(32);

function parts(word) {
  return [(word >> 34n) + 1730000000n, (word >> 17n) & 0x1ffffn, word & 0x1ffffn];
}

function agree(secret, text) {
  const id = parse(text);
  const [second] = parts(wordOf(secret, BigInt.asUintN(64, id)));
  const ahead = timeOf(text) - second * 1000n;
  return ahead >= -2000n && ahead < 3000n;
}

// hkdf and hmac are HKDF-SHA256 without a salt, of 32 bytes, and HMAC-SHA256, of bytes.
function derive(secret, unixMs, text, { hkdf, hmac }) {
  if (text === '') throw new TypeError('key');
  const clear = bytesOf(traceID(unixMs, 1n, 1n).slice(0, 15) + '0'); // with a sequence of 0
  const message = [...clear, ...new TextEncoder().encode(text)];
  const trace = hmac(hkdf(secret, 'traceflake backfill'), message);
  const span = hmac(hkdf(secret, 'traceflake backfill span'), message);
  const sequence = numberOf(trace.slice(4, 8)) & 0x7fffffn;
  return [traceID(unixMs, sequence, numberOf(trace.slice(8, 16)) || 1n), hex(numberOf(span.slice(0, 8)) || 1n, 16)];
}

const bytesOf = (digits) => digits.match(/../g).map((x) => parseInt(x, 16));
const numberOf = (bytes) => bytes.reduce((n, byte) => (n << 8n) | BigInt(byte), 0n);
