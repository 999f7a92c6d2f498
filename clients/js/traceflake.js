// Time-ordered trace IDs for OpenTelemetry in browsers and Node. The format and its limits:
// https://github.com/traceflake/traceflake/blob/main/docs/format.md
//
//	trace ID: 41 bits milliseconds since 2020 | 23 bits sequence | 64 random bits
//	span ID: 64 random bits

const EPOCH = 1577836800000; // 2020-01-01T00:00:00Z
const MAX_MILLIS = 2 ** 41 - 1;
const SEQUENCES = 2 ** 23;
const HOLD = 2000; // milliseconds
const HOUR = 3600000;

const DIGITS = Uint8Array.from('0123456789abcdef', (c) => c.charCodeAt(0));

const digit = (word, shift) => DIGITS[word >>> shift & 15];

// span returns two words of 32 bits as 16 digits. A single call for all digits costs a third of
// joining strings, so trace repeats the lines.
function span(a, b) {
  return String.fromCharCode(
    digit(a, 28), digit(a, 24), digit(a, 20), digit(a, 16),
    digit(a, 12), digit(a, 8), digit(a, 4), digit(a, 0),
    digit(b, 28), digit(b, 24), digit(b, 20), digit(b, 16),
    digit(b, 12), digit(b, 8), digit(b, 4), digit(b, 0),
  );
}

// trace returns a trace ID. The two words of its clear half: bit operations have 32 bits, the
// division all 53.
function trace(millis, sequence, c, d) {
  const a = millis / 512;
  const b = millis % 512 * SEQUENCES + sequence;
  return String.fromCharCode(
    digit(a, 28), digit(a, 24), digit(a, 20), digit(a, 16),
    digit(a, 12), digit(a, 8), digit(a, 4), digit(a, 0),
    digit(b, 28), digit(b, 24), digit(b, 20), digit(b, 16),
    digit(b, 12), digit(b, 8), digit(b, 4), digit(b, 0),
    digit(c, 28), digit(c, 24), digit(c, 20), digit(c, 16),
    digit(c, 12), digit(c, 8), digit(c, 4), digit(c, 0),
    digit(d, 28), digit(d, 24), digit(d, 20), digit(d, 16),
    digit(d, 12), digit(d, 8), digit(d, 4), digit(d, 0),
  );
}

const isHex = (text, digits) => typeof text === 'string' && text.length === digits
  && /^[0-9a-f]*[1-9a-f][0-9a-f]*$/.test(text);

export class TraceflakeIdGenerator {
  constructor() {
    if (typeof crypto === 'undefined' || !crypto.getRandomValues) {
      throw new Error('traceflake: no crypto.getRandomValues; in React Native, first import react-native-get-random-values');
    }
    if (this.generateTraceId || this.generateSpanId) {
      throw new TypeError('traceflake: a subclass cannot override the methods; wrap a generator instead');
    }
    // The state is in a closure: bundlers turn private fields into WeakMaps, which are many times
    // slower. SDKs may call the methods detached.
    const random = new Uint32Array(1024);
    let next = random.length; // word
    let millis = 0; // of the last trace ID
    let sequence = 0;

    // draw makes 64 random bits ready, not all 0, which would be an invalid ID: the two words
    // before next.
    function draw() {
      do {
        if (next === random.length) {
          crypto.getRandomValues(random);
          next = 0;
        }
        next += 2;
      } while (!(random[next - 2] || random[next - 1]));
    }

    // All processes that are started from a snapshot would have the numbers drawn before it.
    const snapshot = globalThis.process?.getBuiltinModule?.('v8').startupSnapshot;
    if (snapshot?.isBuildingSnapshot()) snapshot.addSerializeCallback(() => { next = random.length; });

    const generateSpanId = () => {
      draw();
      return span(random[next - 2], random[next - 1]);
    };

    const generateTraceId = () => {
      const now = Date.now() - EPOCH;
      // With a clock that is wrong by years, all IDs would sort into one place.
      if (!(now >= 0 && now <= MAX_MILLIS)) return generateSpanId() + generateSpanId();
      const first = now ? 0 : 1; // a clear half of zero is what 64-bit IDs have
      if (++sequence === SEQUENCES) {
        millis++;
        sequence = 0;
      }
      // Follow the clock forward, and back if this ID would be 2 s ahead of it or more.
      const ahead = (millis - now) * SEQUENCES + sequence - first;
      if (ahead < 0 || ahead >= HOLD * SEQUENCES || millis > MAX_MILLIS) {
        millis = now;
        sequence = first;
      }
      draw();
      return trace(millis, sequence, random[next - 2], random[next - 1]);
    };

    // They cannot be replaced, by fields of a subclass either.
    for (const [name, value] of Object.entries({ generateTraceId, generateSpanId })) {
      Object.defineProperty(this, name, { value, enumerable: true });
    }
  }
}

export function traceIdAt(unixMillis, sequence, low) {
  const millis = Math.floor(unixMillis) - EPOCH;
  if (!(millis >= 0 && millis <= MAX_MILLIS)) {
    throw new RangeError('traceflake: the time is not from 2020 to 2089');
  }
  if (!(Number.isInteger(sequence) && sequence >= (millis ? 0 : 1) && sequence < SEQUENCES)) {
    throw new RangeError('traceflake: the sequence is not from 0 (1 in the first ms) to 8388607');
  }
  if (!isHex(low, 16)) {
    throw new RangeError('traceflake: the low half is not 16 lower-case hex digits, or is 0');
  }
  return trace(millis, sequence, parseInt(low.slice(0, 8), 16), parseInt(low.slice(8), 16));
}

export function timeOf(id) {
  if (!isHex(id, 32)) {
    throw new TypeError('traceflake: a trace ID has 32 lower-case hex digits, not all 0');
  }
  if (id.startsWith('0000000000000000')) return null;
  const millis = parseInt(id.slice(0, 8), 16) * 512 + (parseInt(id.slice(8, 16), 16) >>> 23);
  return new Date(millis + EPOCH);
}

export function notBefore(id, slackMillis = HOUR) {
  const time = timeOf(id);
  if (time === null || time > Date.now() + HOUR) return null;
  const bound = new Date(time - Math.max(slackMillis, 0));
  return isNaN(bound) ? null : bound;
}
