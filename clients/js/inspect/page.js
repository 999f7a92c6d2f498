// The page that decodes a pasted ID: docs/inspect.html.
import { notBefore, traceIdAt } from '../traceflake.js';
import { identify, idsIn } from './identify.js';

const hex = (value, digits) => value.toString(16).padStart(digits, '0');
const utc = (millis) =>
  new Date(millis)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.?0*Z$/, ' UTC');

// element returns an element with attributes and children, which may be text.
function element(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children.filter((child) => child !== undefined));
  return e;
}

// ago returns how long ago a time was, in the reader's language.
function ago(millis) {
  const seconds = (millis - Date.now()) / 1000;
  const format = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
  for (const [unit, length] of [
    ['year', 31557600],
    ['day', 86400],
    ['hour', 3600],
    ['minute', 60],
  ]) {
    if (Math.abs(seconds) >= length) return format.format(Math.trunc(seconds / length), unit);
  }
  return format.format(Math.trunc(seconds), 'second');
}

// colour returns the class of a field.
function colour(name) {
  const classes = {
    time: 'c0',
    sequence: 'c1',
    'low half': 'c2',
    random: 'c2',
    encrypted: 'c2',
    unknown: 'c4',
    unused: 'c4',
    zero: 'c4',
    version: 'c4',
    variant: 'c4',
  };
  return classes[name] ?? 'c3'; // which machine or process it was
}

// bar returns the fields of an ID as a bar, and as a list for those who cannot see it.
function bar({ fields, bits, ...found }) {
  const unit = bits ? 'bits' : 'characters';
  let at = bits?.width;
  const contents = fields.map(([name, size]) => {
    at -= size;
    if (name === 'time') return found.time === undefined ? 'unknown' : utc(found.time);
    if (!bits) return found.parts.find((part) => part.name === name).value;
    const value = BigInt.asUintN(size, bits.value >> BigInt(at));
    return size > 32 ? '0x' + hex(value, Math.ceil(size / 4)) : String(value);
  });
  return [
    element(
      'div',
      { class: 'bar', 'aria-hidden': 'true' },
      ...fields.map(([name, size]) =>
        element('span', { class: colour(name), style: `flex: ${size} 1 0` }),
      ),
    ),
    element(
      'ol',
      { class: 'fields' },
      ...fields.map(([name, size], i) =>
        element(
          'li',
          {},
          element('i', { class: colour(name), 'aria-hidden': 'true' }),
          `${name}: `,
          element('code', {}, contents[i]),
          ' ',
          element('small', {}, `${size} ${size === 1 ? unit.slice(0, -1) : unit}`),
        ),
      ),
    ),
  ];
}

// list returns names and values. A click or the Tab key selects a value, to be copied.
function list(rows) {
  return element(
    'dl',
    {},
    ...rows.flatMap(([name, value]) => {
      const code = element('code', { tabindex: 0, 'aria-label': `${name}: ${value}` }, value);
      code.addEventListener('focus', () => getSelection().selectAllChildren(code));
      return [element('dt', {}, name), element('dd', {}, code)];
    }),
  );
}

// forms returns the same ID in other forms.
function forms({ width, value }, span) {
  const low = BigInt.asUintN(64, value);
  if (width === 64) {
    return [
      ['hex', hex(value, 16)],
      ['decimal', String(value)],
      ['base 32', value.toString(32)],
      ['as a trace ID', hex(value, 32)],
    ];
  }
  const digits = hex(value, 32);
  return [
    ['hex', digits],
    ['as a UUID', digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')],
    ['base 32', value.toString(32)],
    ['low half, decimal (64-bit Datadog)', String(low)],
    ['low half, base 32', low.toString(32)],
    [
      span ? 'traceparent' : 'traceparent, the low half as span',
      `00-${digits}-${span ?? hex(low || 1n, 16)}-01`,
    ],
  ];
}

// byEye returns the times that the first digits of a trace ID stand for.
function byEye(id) {
  const digits = hex(id, 32);
  const rows = [
    [4, '9 hours'],
    [5, '35 minutes'],
    [6, '2 minutes'],
    [7, '8 seconds'],
  ].map(([n, length]) => {
    const from = Number(BigInt('0x' + digits.slice(0, n).padEnd(16, '0')) >> 23n) + EPOCH;
    const to = from + 2 ** (41 - 4 * n);
    return element(
      'tr',
      {},
      element('th', { scope: 'row' }, element('code', {}, digits.slice(0, n))),
      element('td', {}, length),
      element(
        'td',
        {},
        `${utc(Math.ceil(from / 1000) * 1000)} to ${utc(Math.ceil(to / 1000) * 1000).slice(11)}`,
      ),
    );
  });
  return element(
    'details',
    {},
    element('summary', {}, 'Reading the time by eye'),
    element('p', {}, 'IDs with the same first digits began in the same time:'),
    element('table', {}, ...rows),
  );
}

const EPOCH = Date.UTC(2020, 0);

function kind(found) {
  const children = [element('h3', {}, found.kind)];
  if (found.time !== undefined) {
    const iso = new Date(found.time).toISOString();
    children.push(
      element(
        'p',
        {},
        element('time', { datetime: iso }, utc(found.time)),
        ' ',
        element(
          'span',
          { class: 'soft' },
          `${ago(found.time)}; here ${new Date(found.time).toLocaleString()}`,
        ),
      ),
    );
  }
  children.push(...bar(found));
  if (found.kind === 'traceflake trace ID') {
    const bound = notBefore(hex(found.bits.value, 32));
    children.push(
      element(
        'p',
        {},
        element(
          'small',
          {},
          `Search for its spans from ${utc(bound.getTime())}: an hour earlier, for wrong clocks.`,
        ),
      ),
    );
  }
  if (found.note)
    children.push(
      element(
        'p',
        {},
        element('small', {}, found.note[0].toUpperCase() + found.note.slice(1) + '.'),
      ),
    );
  if (found.kind === 'traceflake trace ID') children.push(byEye(found.bits.value));
  return element('article', {}, ...children);
}

// section returns the kinds that an ID of a line may be of.
function section(found, span) {
  const { role, id } = found;
  const kinds = identify(found);
  const title = element(
    'h2',
    {},
    `${role ? role[0].toUpperCase() + role.slice(1) + ' ID' : 'ID'} `,
    element('code', {}, id),
  );
  const { bits } = kinds[0];
  return element(
    'section',
    {},
    title,
    ...kinds.map(kind),
    ...(bits
      ? [
          element(
            'article',
            {},
            element('h3', {}, 'The same in other forms'),
            list(forms(bits, span)),
          ),
        ]
      : []),
  );
}

const input = document.getElementById('line');
const output = document.getElementById('found');

function show() {
  if (!input.value.trim()) return output.replaceChildren();
  const ids = idsIn(input.value);
  const span = ids.find(({ role, id }) => role === 'span' && /^[0-9a-f]{16}$/.test(id))?.id;
  if (!ids.length)
    return output.replaceChildren(
      element('section', {}, element('p', {}, 'There is no ID in this line.')),
    );
  return output.replaceChildren(...ids.map((id) => section(id, span)));
}

// fromAddress returns the part of the address after #, which is not sent to a server.
function fromAddress() {
  const text = location.hash.slice(1);
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // somebody has typed a percent sign
  }
}

input.value = fromAddress() || traceIdAt(Date.now(), 7, '3fc30e0898c5a211');
input.addEventListener('input', show);
addEventListener('hashchange', () => {
  input.value = fromAddress();
  show();
});
show();
