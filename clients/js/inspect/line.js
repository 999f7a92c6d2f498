// Finds the IDs in a line, as `traceflake inspect` does: testdata/inspect.json has the vectors.

const isHex = (text) => /^[0-9a-f]+$/i.test(text);

// idsIn returns the IDs in a line, as they are written: [{ role, id }].
export function idsIn(line) {
  line = line.trim();
  const colon = line.indexOf(':');
  if (colon >= 0 && line.startsWith('{')) return fromJSON(line);
  const pairs = fromPairs(line);
  if (pairs.length) return pairs;
  const name = colon >= 0 && isField(line.slice(0, colon)) ? line.slice(0, colon) : '';
  const found = field(name, name ? line.slice(colon + 1) : line);
  if (!name && /[ \t]/.test(line)) {
    const words = fromText(line);
    if (words.length) return words;
  }
  return found;
}

// roleOf returns the role of the ID in a field, whatever its name's case and punctuation.
function roleOf(name) {
  name = name.toLowerCase().replace(/[_.-]/g, '');
  if (name.endsWith('traceid')) return 'trace';
  if (/parent(span)?id$/.test(name)) return 'parent';
  return name.endsWith('spanid') ? 'span' : '';
}

function isField(name) {
  name = name.trim().toLowerCase();
  return name === 'traceparent' || name === 'b3' || roleOf(name) !== '';
}

// field returns the IDs in the value of a header or a field with this name. Without a name the form
// of the value decides.
function field(name, value) {
  name = name.trim().toLowerCase();
  value = value
    .replace(/^["'`,;()[\]{} \t]+|["'`,;()[\]{} \t]+$/g, '')
    .replace(/^0x(?=[0-9a-f]+$)/i, '');
  const dashes = value.split('-');
  const colons = value.replaceAll('%3A', ':').split(':');
  if (
    name === 'traceparent' ||
    (!name && dashes.length === 4 && dashes[0].length === 2 && dashes[1].length === 32)
  ) {
    return withRoles(dashes, ['', 'trace', 'span']);
  }
  if (name === 'b3' || (!name && isB3(dashes)))
    return withRoles(dashes, ['trace', 'span', '', 'parent']);
  if (colons.length === 4 && isHex(colons[0]) && (name || colons[0].length > 13))
    return jaeger(colons);
  if (value.includes('Root=')) return xray(value);
  return [{ role: roleOf(name), id: value }];
}

const isB3 = (dashes) =>
  dashes.length >= 2 &&
  dashes.length <= 4 &&
  isHex(dashes[0]) &&
  (dashes[0].length === 32 || dashes[0].length === 16);

// jaeger returns the IDs in the fields of uber-trace-id, which leaves out leading zeros.
function jaeger(fields) {
  const ids = fields.slice(0, 3).map((id) => id.padStart(id.length > 16 ? 32 : 16, '0'));
  return withRoles(/^0*$/.test(ids[2]) ? ids.slice(0, 2) : ids, ['trace', 'span', 'parent']);
}

function xray(value) {
  const roles = { Root: 'trace', Parent: 'span' };
  return value
    .split(';')
    .map((part) => part.trim().split('='))
    .filter(([name]) => roles[name])
    .map(([name, id]) => ({ role: roles[name], id: id ?? '' }));
}

function withRoles(ids, roles) {
  return roles
    .map((role, i) => ({ role, id: ids[i] }))
    .filter(({ role, id }) => role && id !== undefined);
}

function fromText(text) {
  const words = text.match(/\b([0-9a-f]{16}|[0-9a-f]{32})\b/gi) ?? [];
  if (!words.some((word) => word.length === 32)) return [];
  return words.map((id) => ({ role: id.length === 32 ? 'trace' : 'span', id }));
}

// fromPairs reads name=value, also within other text. Quoted values are matched as a whole.
function fromPairs(line) {
  return [...line.matchAll(/([\w.-]+)=("(?:[^"\\]|\\.)*"|[^\s"]+)/g)]
    .filter(([, name, value]) => isField(name) && value !== '""')
    .flatMap(([, name, value]) => field(name, value));
}

function fromJSON(line) {
  try {
    return fromValue('', '', JSON.parse(line));
  } catch {
    return [];
  }
}

// fromValue reads the value of a field, whose name may be spread over nested objects.
function fromValue(path, name, value) {
  if (Array.isArray(value)) return value.flatMap((element) => fromValue(path, name, element));
  if (value && typeof value === 'object')
    return Object.keys(value)
      .sort()
      .flatMap((inner) => fromValue(path + name, inner, value[inner]));
  if (typeof value !== 'string' || !value) return [];
  if (isField(name)) return field(name, value);
  return isField(path + name) ? field(path + name, value) : [];
}
