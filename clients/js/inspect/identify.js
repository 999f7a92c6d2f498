// Finds the IDs in a line, and the kinds that each may be of without a secret, by the table that
// `traceflake inspect` uses.
import table from '../../../cmd/traceflake/internal/identify/table.json' with { type: 'json' };

const HOUR = 3600000;
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const BY_TIME = 'by its time only';

const pattern = (text, flags = 'i') => new RegExp(text, flags);
const roles = Object.entries(table.roles).map(([role, text]) => [role, pattern(text)]);
const rewritten = table.rewritten.map(([from, to]) => [
  pattern(from.replace('(?i)', ''), from.startsWith('(?i)') ? 'gi' : 'g'),
  to.replace(/\$\{(\d)\}/g, '$$$1'),
]);
const [codes, cut] = [table.codes, table.cut].map((text) => pattern(text, 'gi'));
const [high, dashed] = [table.high, table.dashed].map((text) => pattern(text));
const tokens = table.tokens.map((text) => pattern(text));
const named = pattern(table.named, 'gi');
const kinds = table.kinds.map((kind) => ({ ...kind, text: kind.text && pattern(kind.text) }));

const hex = (value, digits) => value.toString(16).padStart(digits, '0');
const isHex = (text) => /^[0-9a-f]+$/i.test(text);

// idsIn returns the IDs in a line, each once: [{ role, id, notation, value, padded }].
export function idsIn(line) {
  const found = [];
  line = line.trim();
  for (const [from, to] of rewritten) line = line.replace(from, to);
  for (let i = 0; i < 2; i++)
    line = line.replace(codes, (code) => String.fromCharCode(parseInt(code.slice(-2), 16)));
  line = line.replace(cut, ' ');
  whole(found, '', line.replace(/^["'`,.?!;()[\]{}<> \t]+|["'`,.?!;()[\]{}<> \t]+$/g, ''));
  if (!found.length) {
    addNamed(found, line);
    addHigh(found, line);
  }
  if (found.every(({ role }) => role === 'span')) addText(found, line);
  return found;
}

// add adds an ID, unless it is there already or is all zeros, and reports whether text is an ID.
function add(found, role, text) {
  const id = read(role, text);
  if (!id || (role && role !== 'trace' && id.value >= 1n << 64n)) return false;
  if (id.notation && !found.some((f) => f.role === role && f.id === id.id))
    found.push({ role, ...id });
  return true;
}

// addGroups adds the IDs in the groups of a match, which are named by their roles.
function addGroups(found, match) {
  for (const [role, text] of Object.entries(match.groups))
    if (text) add(found, role, match[0].includes(':') ? text.padStart(16, '0') : text);
}

// whole adds the IDs in a value that consists of nothing else.
function whole(found, role, token) {
  for (const form of tokens) {
    const match = form.exec(token);
    if (match) {
      addGroups(found, match);
      return true;
    }
  }
  return add(found, role, token);
}

// addNamed adds the IDs in values whose names say that they are IDs.
function addNamed(found, line) {
  named.lastIndex = 0;
  for (let match; (match = named.exec(line)); ) {
    const [all, name, value] = match;
    const key = name.toLowerCase().replace(/[_.-]/g, '');
    const role = roles.find(([, form]) => form.test(key))?.[0];
    const token = value.replace(/[.:/-]+$/, '');
    // Otherwise the value may be a name.
    if (!role || !(whole(found, role, token) || addText(found, token)))
      named.lastIndex = match.index + all.length - value.length;
  }
}

// addHigh completes the low halves that Datadog's libraries log, if the line has the high half too.
function addHigh(found, line) {
  const match = high.exec(line);
  found.forEach(({ role, value }, i) => {
    if (!match || role !== 'trace' || !value || value >= 1n << 64n) return;
    const whole = read('trace', match[1] + hex(value, 16));
    if (whole?.notation && !found.some(({ id }) => id === whole.id)) found[i] = { role, ...whole };
  });
}

// addText adds the IDs of 128 bits anywhere in a text, and those of 64 bits if there are some.
function addText(found, text) {
  const all = [...text.matchAll(pattern(table.anywhere, 'gi'))];
  for (const match of all) addGroups(found, match);
  if (all.length)
    for (const [digits] of text.matchAll(pattern(table.short, 'gi')))
      if (!found.some(({ id }) => id === digits)) add(found, 'span', digits);
  return all.length > 0;
}

// mixed reports whether a text has a digit, and letters of both cases.
const mixed = (text) => /[0-9]/.test(text) && /[a-z]/.test(text) && /[A-Z]/.test(text);

// base64 returns the hex digits of bytes in base64, with either alphabet.
function base64(text) {
  try {
    const standard = text.replaceAll('-', '+').replaceAll('_', '/');
    const bytes = atob(standard);
    if (btoa(bytes).replaceAll('=', '') !== standard) return undefined;
    return [...bytes].map((c) => hex(c.charCodeAt(0), 2)).join('');
  } catch {
    return undefined;
  }
}

// read reads the text of an ID in one of the notations. Zeros have none.
function read(role, text) {
  if (/^0x[0-9a-f]+$/i.test(text)) text = text.slice(2).toLowerCase();
  if (/^0+$/.test(text)) return {};
  const n = text.length;
  const notation = { 16: 'hex64', 32: 'hex128' }[n] ?? (dashed.test(text) && 'uuid');
  const digits = notation === 'uuid' ? text.replace(/^1-/, '').replaceAll('-', '') : text;
  const value = isHex(digits) ? BigInt('0x' + digits) : 0n;
  if (value && notation) return { id: text, notation, value };
  if (/^\d{14,39}$/.test(text)) {
    const number = BigInt(text);
    if (number >= 1n << 128n) return undefined;
    if (number >= 1n << 64n)
      return {
        id: hex(number, 32),
        notation: 'hex128',
        value: number,
        padded: number < 1n << 124n,
      };
    return { id: text, notation: 'decimal', value: number };
  }
  if (role === 'trace' && 17 <= n && n < 32 && isHex(text))
    return { ...read(role, text.padStart(32, '0')), padded: true };
  if (role && 13 <= n && n < 16 && isHex(text)) return read(role, text.padStart(16, '0'));
  if (role && (text.endsWith('=') || (n === 22 && mixed(text)))) {
    const bytes = base64(text.replaceAll('=', ''));
    if (bytes && (bytes.length === 32 || bytes.length === 16)) return read(role, bytes);
  }
  if (/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/i.test(text)) {
    const ulid = [...text.toUpperCase()].reduce(
      (sum, c) => (sum << 5n) | BigInt(CROCKFORD.indexOf(c)),
      0n,
    );
    return ulid ? { id: text, notation: 'ulid', value: ulid } : undefined;
  }
  if (!role && kinds.some((kind) => kind.text?.test(text))) return { id: text, notation: 'text' };
  return undefined;
}

// identify returns the kinds that an ID of idsIn may be of, the likeliest first: [{ kind, time,
// sequence, parts, text, note, bits, fields }]. bits are { width, value }, and fields [[name, size]]
// the parts of the ID from left to right.
export function identify(id, now = Date.now()) {
  const { notation, value } = id;
  if (notation === 'text') return ofTable(id, now);
  if (notation === 'ulid') {
    const ulid = ofTable(id, now).find(({ kind }) => kind === 'ULID');
    const text = hex(value, 32);
    if (ulid) return [{ ...ulid, text, note: undefined }];
    return [{ ...unknown(128, value, 'ULID', 'its time is not plausible')[0], text }];
  }
  const all = ofTable(id, now);
  if (value >= 1n << 64n) {
    if (all.length) return all;
    const time = new Date(Number(value >> 87n) + table.kinds[0].epoch_ms);
    const note = id.padded
      ? 'not ours: those have 32 digits'
      : `not ours: its time would be ${time.toISOString().slice(0, 19)}Z`;
    return unknown(128, value, '128 bits', note);
  }
  let note = 'a B3 trace ID or a span ID from any tracer; a secret would identify ours';
  if (notation === 'decimal')
    note = 'an ID from Datadog or from any other system; a secret would identify ours';
  if (notation === 'hex128' || notation === 'uuid') note += '; padded to 128 bits with zeros';
  return [...all, ...unknown(64, value, '64 bits', note)];
}

const unknown = (width, value, kind, note) => [
  { kind, note, bits: { width, value }, fields: [['unknown', width]] },
];

// ofTable returns the kinds of the table that an ID may be of.
function ofTable(id, now) {
  const likely = [];
  const unlikely = [];
  for (const kind of kinds) {
    if (id.padded && kind === kinds[0]) continue; // since May 2024 all of ours have 32 digits
    const found = kind.text ? readText(kind, id) : readBits(kind, id);
    if (!found || (kind.written && kind.written !== id.notation)) continue;
    const { time } = found;
    if (kind.from && (new Date(time).getUTCFullYear() < kind.from || time > now + HOUR)) continue;
    if (likely.some((other) => other.time === time)) continue; // in a more special format
    const early = kind.likely_from && time < Date.parse(kind.likely_from);
    (early ? unlikely : likely).push({ kind: kind.kind, ...found });
  }
  return [...likely, ...unlikely];
}

function readBits(kind, { notation, role, value }) {
  if (notation === 'text' || kind.width !== (value < 1n << 64n ? 64 : 128)) return undefined;
  if (kind.width === 64 && role) return undefined;
  const found = { bits: { width: kind.width, value }, fields: [], note: BY_TIME };
  if (!kind.from) found.note = 'random, but for the version and variant';
  const parts = [];
  let at = BigInt(kind.width);
  for (const { name, bits, is, shown } of kind.fields) {
    at -= BigInt(bits);
    const content = BigInt.asUintN(bits, value >> at);
    if (is !== undefined && content !== BigInt(is)) return undefined;
    found.fields.push([name, bits]);
    if (name === 'time') found.time = kind.epoch_ms + Number(content) * kind.unit_ms;
    else if (shown || (is === undefined && kind.width === 64)) parts.push({ name, value: String(content) });
    if (kind.likely_from && name === 'sequence') {
      found.sequence = Number(content); // ours
      found.note = `${BY_TIME}; a secret would decide`;
    }
  }
  if (parts.length) found.parts = parts;
  return found;
}

function readText(kind, { notation, id }) {
  const match = notation === 'text' && kind.text.exec(id);
  if (!match) return undefined;
  const groups = Object.entries(match.groups);
  return {
    time: Number(match.groups.time),
    parts: groups
      .filter(([name]) => name !== 'time')
      .map(([name, value]) => ({ name, value })),
    fields: groups.map(([name, value]) => [name, value.length]),
    note: BY_TIME,
  };
}
