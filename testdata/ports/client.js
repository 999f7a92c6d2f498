// Adapts the JavaScript client to check.js, as a port.

// adapt returns the client as an implementation for check. resume(millis, sequence) returns the
// client with a state that begins there; without it, vectors with such a state are not checked.
export function adapt(client, resume) {
  return {
    traceID: (unixMs, sequence, low) =>
      client.traceIdAt(Number(unixMs), Number(sequence), low.toString(16).padStart(16, '0')),
    timeOf: (text) => millis(client.timeOf(text)),
    notBefore: (text, slack, now) =>
      millis(
        platform(
          () => Number(now),
          undefined,
          () => client.notBefore(text, Number(slack)),
        ),
      ),
    generator(last, clock, draw) {
      if (last && !resume) return undefined;
      const { TraceflakeIdGenerator } = last ? resume(last >> 23n, last & 0x7fffffn) : client;
      const g = new TraceflakeIdGenerator();
      const run = (generate) => () => platform(() => Number(clock()), draw, generate);
      return { traceID: run(g.generateTraceId), spanID: run(g.generateSpanId) };
    },
    derive:
      client.deriveTraceId &&
      (async (secret, unixMs, key) => [
        await client.deriveTraceId(hex(secret), Number(unixMs), key),
        await client.deriveSpanId(hex(secret), Number(unixMs), key),
      ]),
  };
}

const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
const millis = (date) => (date === null ? null : BigInt(date.getTime()));

// platform runs f with another clock and other random numbers.
function platform(now, draw, f) {
  const saved = [Date.now, crypto.getRandomValues];
  Date.now = now;
  crypto.getRandomValues = (words) => {
    for (let i = 0; i < words.length; i += 2) {
      const bits = draw();
      words[i] = Number(bits >> 32n);
      words[i + 1] = Number(bits & 0xffffffffn);
    }
    return words;
  };
  try {
    return f();
  } finally {
    [Date.now, crypto.getRandomValues] = saved;
  }
}
