// docs/format.md as code, as literally as possible. The tests prepend nextClear, EPOCH and LAST_MS
// from the page. It is written to be read and ported, and to be broken by wrong.js.

// SPARX-64/128: four words of 16 bits in a block, eight in a key.

const rotl = (x, n) => ((x << n) | (x >> (16 - n))) & 0xffff;

function round(a, b) {
  a = (rotl(a, 9) + b) & 0xffff;
  return [a, rotl(b, 2) ^ a];
}

function unround(a, b) {
  b = rotl(a ^ b, 14);
  return [rotl((a - b) & 0xffff, 7), b];
}

// expand returns the 100 subkeys of a key.
function expand(key) {
  const subkeys = [];
  let k = key;
  for (let c = 1; c <= 16; c++) {
    subkeys.push(...k.slice(0, 6));
    const [a, b] = round(k[0], k[1]);
    k = [k[6], (k[7] + c) & 0xffff, a, b, (k[2] + a) & 0xffff, (k[3] + b) & 0xffff, k[4], k[5]];
  }
  return [...subkeys, ...k.slice(0, 4)];
}

function encrypt(s, [a, b, c, d]) { // s: the subkeys
  for (let i = 0; i < 96; i += 12) {
    for (let j = i; j < i + 6; j += 2) {
      [a, b] = round(a ^ s[j], b ^ s[j + 1]);
      [c, d] = round(c ^ s[j + 6], d ^ s[j + 7]);
    }
    const t = rotl(a ^ b, 8);
    [a, b, c, d] = [c ^ a ^ t, d ^ b ^ t, a, b];
  }
  return [a ^ s[96], b ^ s[97], c ^ s[98], d ^ s[99]];
}

function decrypt(s, [a, b, c, d]) {
  [a, b, c, d] = [a ^ s[96], b ^ s[97], c ^ s[98], d ^ s[99]];
  for (let i = 84; i >= 0; i -= 12) {
    const t = rotl(c ^ d, 8);
    [a, b, c, d] = [c, d, a ^ c ^ t, b ^ d ^ t];
    for (let j = i + 4; j >= i; j -= 2) {
      [a, b] = unround(a, b);
      [c, d] = unround(c, d);
      [a, b, c, d] = [a ^ s[j], b ^ s[j + 1], c ^ s[j + 6], d ^ s[j + 7]];
    }
  }
  return [a, b, c, d];
}

const bytes = new DataView(new ArrayBuffer(8)); // big-endian, unless "true" asks for little-endian

function words(number) {
  bytes.setBigUint64(0, number, true);
  return [0, 2, 4, 6].map((i) => bytes.getUint16(i));
}

function number(words) {
  words.forEach((word, i) => bytes.setUint16(2 * i, word));
  return bytes.getBigUint64(0, true);
}

// secret is an array of 16 bytes; the others are BigInts.
const key = (secret) => [0, 2, 4, 6, 8, 10, 12, 14].map((i) => (secret[i] << 8) | secret[i + 1]);

function randflake(secret, unixSeconds, node, sequence) {
  const word = ((unixSeconds - 1730000000n) << 34n) | (node << 17n) | sequence;
  return number(encrypt(expand(key(secret)), words(word)));
}

const wordOf = (secret, id) => number(decrypt(expand(key(secret)), words(id)));

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
  if (timeOf(text) === null) return false;
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
