// The kinds that an ID may be of, without a secret: those whose time is plausible, the likeliest
// first.
import { timeOf } from '../traceflake.js';
import { presets, read } from './snowflake.js';

const HOUR = 3600000;
const RANDFLAKE_EPOCH = 1730000000000;
const FOREIGN_FROM = Date.UTC(2016, 0, 1); // when ULID and X-Ray appeared
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const BY_TIME = 'by its time only';

// identify returns [{ kind, time, sequence, parts, text, note, bits, fields }]: bits are { width,
// value }, and fields [[name, size]] the parts of the ID from left to right. layout is that of
// 64-bit IDs, if the reader has chosen one.
export function identify(text, now = Date.now(), layout = undefined) {
  const long = hex128(text);
  if (long !== undefined) return bits128(text, long, now, layout);
  const ulid = ulidOf(text);
  if (ulid !== undefined) return [ulidText(ulid)];
  const short = bits64Of(text);
  if (short) return bits64(short.id, short.isDecimal, now, layout);
  return tracers(text, now) ?? base32(text);
}

const plausible = (millis, now) => millis <= now + HOUR;
const hex = (value, digits) => value.toString(16).padStart(digits, '0');
const number = (digits) => BigInt('0x' + digits);

function hex128(text) {
  const digits = text.replace(/^1-/, '').replaceAll('-', '').toLowerCase();
  return /^[0-9a-f]{32}$/.test(digits) && number(digits) ? number(digits) : undefined;
}

function ulidOf(text) {
  if (!/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/i.test(text)) return undefined;
  return (
    [...text.toUpperCase()].reduce((n, c) => (n << 5n) | BigInt(CROCKFORD.indexOf(c)), 0n) ||
    undefined
  );
}

function bits64Of(text) {
  if (/^[0-9a-f]{16}$/i.test(text) && number(text)) return { id: number(text), isDecimal: false };
  if (!/^\d{14,}$/.test(text)) return undefined;
  const id = BigInt(text);
  return id && id < 1n << 64n ? { id, isDecimal: true } : undefined;
}

function bits128(text, id, now, layout) {
  if (id < 1n << 64n) {
    return bits64(id, false, now, layout).map((found) => ({
      ...found,
      note: `${found.note ?? ''}; padded to 128 bits with zeros`,
    }));
  }
  const all = [...(tracers(text, now) ?? []), ...traceID(id, now)];
  if (text.length === 36 && /^.{8}-.{5}4.{4}[89ab]/i.test(text)) {
    all.push({
      kind: 'UUID v4',
      note: 'random, but for the version and variant',
      bits: { width: 128, value: id },
      fields: [
        ['random', 48],
        ['version', 4],
        ['random', 12],
        ['variant', 2],
        ['random', 62],
      ],
    });
  }
  return all;
}

function traceID(id, now) {
  const bits = { width: 128, value: id };
  const all = foreign(id, now).map((found) => ({ ...found, bits, note: BY_TIME }));
  const millis = timeOf(hex(id, 32)).getTime();
  const ours = {
    kind: 'traceflake trace ID',
    time: millis,
    sequence: Number(BigInt.asUintN(23, id >> 64n)),
    bits,
    fields: [
      ['time', 41],
      ['sequence', 23],
      ['low half', 64],
    ],
    note: `${BY_TIME}; a secret would decide`,
  };
  if (plausible(millis, now)) {
    if (millis < RANDFLAKE_EPOCH) return [...all, ours]; // only old records have such times
    return [ours, ...all];
  }
  if (all.length) return all;
  const note = `not ours: its time would be ${new Date(millis).toISOString().slice(0, 19)}Z`;
  return [{ kind: '128 bits', bits, fields: [['unknown', 128]], note }];
}

// foreign returns the kinds of other systems whose time is plausible.
function foreign(id, now) {
  const all = [];
  const add = (kind, millis, fields) => {
    if (millis >= FOREIGN_FROM && plausible(millis, now)) all.push({ kind, time: millis, fields });
  };
  const digits = hex(id, 32);
  const millis = Number(id >> 80n);
  if (digits[12] === '7' && '89ab'.includes(digits[16])) {
    add('UUID v7', millis, [
      ['time', 48],
      ['version', 4],
      ['random', 12],
      ['variant', 2],
      ['random', 62],
    ]);
  } else {
    add('ULID', millis, [
      ['time', 48],
      ['random', 80],
    ]);
  }
  const seconds = Number(id >> 96n) * 1000;
  if (BigInt.asUintN(32, id >> 64n) === 0n) {
    add('Datadog', seconds, [
      ['time', 32],
      ['zero', 32],
      ['low half', 64],
    ]);
  } else {
    add('X-Ray', seconds, [
      ['time', 32],
      ['random', 96],
    ]);
  }
  return all;
}

function ulidText(id) {
  const millis = Number(id >> 80n);
  const found = {
    kind: 'ULID',
    text: hex(id, 32),
    bits: { width: 128, value: id },
    fields: [
      ['time', 48],
      ['random', 80],
    ],
  };
  if (millis >= Date.UTC(10000, 0)) return { ...found, note: 'its time is past the year 9999' };
  return { ...found, time: millis };
}

function bits64(id, isDecimal, now, layout) {
  const bits = { width: 64, value: id };
  const all = snowflakes(id, isDecimal, now, layout).map((found) => ({ ...found, bits }));
  if (layout && all.length) return all;
  const from = isDecimal
    ? 'an ID from Datadog or from any other system'
    : 'a B3 trace ID or a span ID from any tracer';
  return [
    ...all,
    {
      kind: '64 bits',
      bits,
      fields: [['unknown', 64]],
      note: `${from}; a secret would identify ours`,
    },
  ];
}

function snowflakes(id, isDecimal, now, layout) {
  const candidates = layout
    ? [layout]
    : isDecimal
      ? [presets.twitter, presets.sonyflake, presets.uidgenerator]
      : [];
  return candidates.flatMap((candidate) => {
    const found = read(candidate, id);
    if (!found || (!layout && !plausible(found.millis, now))) return [];
    const used = candidate.fields.reduce((sum, [, n]) => sum + n, 0);
    const fields = used < 64 ? [['unused', 64 - used], ...candidate.fields] : candidate.fields;
    return [
      {
        kind: candidate.kind,
        time: found.millis,
        parts: found.parts,
        fields,
        note: layout ? undefined : BY_TIME,
      },
    ];
  });
}

// tracers returns the kinds of text among trace IDs of tracers with a text form of their own.
function tracers(text, now) {
  const sky = /^([0-9a-f]{32}|-?\d{1,10})\.(\d{1,19})\.(\d{10,14})(\d{4})$/.exec(text);
  if (sky) {
    return [
      {
        kind: 'SkyWalking',
        time: Number(sky[3]),
        parts: named(['process', sky[1]], ['thread', sky[2]], ['sequence', sky[4]]),
        fields: sizes(
          ['process', sky[1]],
          ['thread', sky[2]],
          ['time', sky[3]],
          ['sequence', sky[4]],
        ),
      },
    ];
  }
  const sofa = /^([0-9a-f]{8})(\d{13})([1-9]\d{3})(\d{1,7})$/.exec(text);
  if (!sofa || Number(sofa[2]) < Date.UTC(2010, 0) || !plausible(Number(sofa[2]), now))
    return undefined;
  const address = sofa[1]
    .match(/../g)
    .map((byte) => parseInt(byte, 16))
    .join('.');
  return [
    {
      kind: 'SOFATracer',
      time: Number(sofa[2]),
      parts: named(['address', address], ['sequence', sofa[3]], ['process', sofa[4]]),
      fields: sizes(
        ['address', sofa[1]],
        ['time', sofa[2]],
        ['sequence', sofa[3]],
        ['process', sofa[4]],
      ),
    },
  ];
}

const named = (...parts) => parts.map(([name, value]) => ({ name, value }));
const sizes = (...parts) => parts.map(([name, value]) => [name, value.length]);

// base32 reads a Randflake ID: 10 to 13 digits, since fewer are most likely a word.
function base32(text) {
  if (!/^[1-9a-v][0-9a-v]{9,12}$/.test(text)) return [];
  const value = [...text].reduce((n, c) => (n << 5n) | BigInt(parseInt(c, 32)), 0n);
  if (value >= 1n << 64n) return [];
  return [
    {
      kind: 'Randflake ID',
      bits: { width: 64, value },
      fields: [['encrypted', 64]],
      note: `by its form only, in hex ${hex(value, 16)}; a secret would decide`,
    },
  ];
}
