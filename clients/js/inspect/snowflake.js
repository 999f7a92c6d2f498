// The layouts of Snowflake IDs: fields from high to low; one is the time.

const twitter = {
  kind: 'Snowflake (Twitter)',
  epoch: 1288834974657,
  unit: 1,
  fields: [
    ['time', 41],
    ['machine', 10],
    ['sequence', 12],
  ],
};

export const presets = {
  twitter,
  leaf: { ...twitter, kind: 'Leaf' },
  sonyflake: {
    kind: 'Sonyflake',
    epoch: 1409529600000,
    unit: 10,
    fields: [
      ['time', 39],
      ['sequence', 8],
      ['machine', 16],
    ],
  },
  uidgenerator: {
    kind: 'UidGenerator',
    epoch: 1463673600000,
    unit: 1000,
    fields: [
      ['time', 28],
      ['machine', 22],
      ['sequence', 13],
    ],
  },
};

// layoutOf reads the name of a preset, or an epoch and fields:
// 2020-01-01,time=41,machine=10,sequence=12
export function layoutOf(text) {
  if (Object.hasOwn(presets, text)) return presets[text];
  const [start, ...parts] = text.split(',').map((part) => part.trim());
  const epoch = /^-?\d+$/.test(start) ? Number(start) : Date.parse(start);
  if (!/^(-?\d+|\d{4}-.*)$/.test(start) || isNaN(epoch)) {
    throw new Error('The epoch is not a date, RFC 3339 or Unix milliseconds.');
  }
  const layout = { kind: 'Snowflake', epoch, unit: 1, fields: [] };
  for (const part of parts) {
    const [name, value] = part.split('=');
    if (name === 'unit') {
      layout.unit = unitOf(value);
    } else if (name && /^[1-9]\d?$/.test(value)) {
      layout.fields.push([name, Number(value)]);
    } else {
      throw new Error(`“${part}”: want a field and its bits, such as machine=10.`);
    }
  }
  const bits = layout.fields.reduce((sum, [, n]) => sum + n, 0);
  if (layout.fields.filter(([name]) => name === 'time').length !== 1)
    throw new Error('One field must be named time.');
  if (bits > 64) throw new Error(`The fields have ${bits} bits, more than 64.`);
  return layout;
}

function unitOf(text) {
  const [, number, unit] = /^(\d+)(ms|s)$/.exec(text) ?? [];
  if (!(number > 0)) throw new Error('The unit must be a duration such as 10ms or 1s.');
  return number * (unit === 's' ? 1000 : 1);
}

// read returns { millis, parts } of an ID, or undefined if a bit above the fields is set.
export function read(layout, id) {
  let millis;
  const parts = [];
  for (const [name, bits] of layout.fields.toReversed()) {
    const value = BigInt.asUintN(bits, id);
    id >>= BigInt(bits);
    if (name === 'time') {
      millis = layout.epoch + Number(value) * layout.unit;
    } else {
      parts.unshift({ name, value: String(value) });
    }
  }
  return id === 0n && millis < LAST ? { millis, parts } : undefined;
}

const LAST = Date.UTC(9999, 11, 31); // RFC 3339 has years of four digits
