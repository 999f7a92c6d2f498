// Trace and span IDs derived from a time, a key and a secret: the same in each run. https://github.com/traceflake/traceflake/blob/main/docs/format.md#derived-ids
import { traceIdAt } from './traceflake.js';

const utf8 = new TextEncoder();

export async function deriveTraceId(secret, unixMillis, key) {
  const mac = await macOf(secret, 'backfill', unixMillis, key);
  return traceIdAt(unixMillis, mac.getUint32(4) & 0x7fffff, half(mac, 8));
}

export async function deriveSpanId(secret, unixMillis, key) {
  return half(await macOf(secret, 'backfill span', unixMillis, key), 0);
}

// half returns eight bytes as digits, and 1 for zero, which is not an ID.
function half(bytes, at) {
  return (bytes.getBigUint64(at) || 1n).toString(16).padStart(16, '0');
}

async function macOf(secret, purpose, unixMillis, key) {
  if (typeof secret !== 'string' || !/^[0-9a-f]{32}$/i.test(secret)) {
    throw new TypeError('traceflake: the secret is not 32 hex digits');
  }
  if (typeof key !== 'string' || !key) {
    throw new TypeError('traceflake: the key is empty, and IDs of one millisecond would be equal');
  }
  const info = utf8.encode('traceflake ' + purpose);
  const from = await crypto.subtle.importKey('raw', bytesOf(secret), 'HKDF', false, ['deriveKey']);
  const macKey = await crypto.subtle.deriveKey(
    { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info },
    from, { name: 'HMAC', hash: 'SHA-256', length: 256 }, false, ['sign']);
  // The first ID of the millisecond, with a sequence of 0, which the very first one lacks.
  const first = traceIdAt(unixMillis, 1, '0000000000000001').slice(0, 15) + '0';
  const message = new Uint8Array([...bytesOf(first), ...utf8.encode(key)]);
  return new DataView(await crypto.subtle.sign('HMAC', macKey, message));
}

const bytesOf = (digits) => Uint8Array.from(digits.match(/../g), (x) => parseInt(x, 16));
