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

// hex returns two words of 32 bits as 16 digits. One call for all of them costs a third of joining
// strings.
function hex(a, b) {
  return String.fromCharCode(
    DIGITS[a >>> 28], DIGITS[a >>> 24 & 15], DIGITS[a >>> 20 & 15], DIGITS[a >>> 16 & 15],
    DIGITS[a >>> 12 & 15], DIGITS[a >>> 8 & 15], DIGITS[a >>> 4 & 15], DIGITS[a & 15],
    DIGITS[b >>> 28], DIGITS[b >>> 24 & 15], DIGITS[b >>> 20 & 15], DIGITS[b >>> 16 & 15],
    DIGITS[b >>> 12 & 15], DIGITS[b >>> 8 & 15], DIGITS[b >>> 4 & 15], DIGITS[b & 15],
  );
}

// clear returns the first half of a trace ID. Bit operations have 32 bits, the division all 53.
const clear = (millis, sequence) => hex(millis / 512, millis % 512 * SEQUENCES + sequence);

const isHex = (text, digits) => typeof text === 'string' && text.length === digits
  && /^[0-9a-f]*[1-9a-f][0-9a-f]*$/.test(text);

export class TraceflakeIdGenerator {
  #millis = 0; // of the last trace ID
  #sequence = 0;
  #random = new Uint32Array(512);
  #used = 512;

  // Arrow functions, because an SDK may call them detached.
  generateSpanId = () => {
    for (;;) {
      if (this.#used === this.#random.length) {
        crypto.getRandomValues(this.#random);
        this.#used = 0;
      }
      const a = this.#random[this.#used++];
      const b = this.#random[this.#used++];
      if (a || b) return hex(a, b); // an ID of zeros is invalid
    }
  };

  generateTraceId = () => {
    const now = Date.now() - EPOCH;
    // With a clock that is wrong by years, all IDs would sort into one place.
    if (!(now > 0 && now <= MAX_MILLIS)) return this.generateSpanId() + this.generateSpanId();
    if (now > this.#millis || now < this.#millis - HOLD) {
      this.#millis = now;
      this.#sequence = 0;
    } else if (++this.#sequence === SEQUENCES) {
      this.#millis++;
      this.#sequence = 0;
    }
    return clear(this.#millis, this.#sequence) + this.generateSpanId();
  };
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
  return clear(millis, sequence) + low;
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
  return new Date(time - Math.max(slackMillis, 0));
}
