import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { page } from '../inspect/build.js';
import { identify } from '../inspect/identify.js';
import { idsIn } from '../inspect/line.js';
import { layoutOf } from '../inspect/snowflake.js';

const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');
const vectors = JSON.parse(read('../../../testdata/inspect.json'));

// rfc3339 writes a time as Go does: without zeros at the end of the fraction.
const rfc3339 = (millis) => new Date(millis).toISOString().replace(/\.?0*Z$/, 'Z');

// asGo returns what `traceflake inspect -o json` prints of an ID, without the note.
function asGo({ role, id }, { kind, time, sequence, parts, text }) {
  const found = {
    role: role || undefined,
    id,
    kind,
    time: time === undefined ? undefined : rfc3339(time),
    sequence,
    parts,
    text,
  };
  return JSON.parse(JSON.stringify(found)); // without what is undefined
}

for (const { line, snowflake, found } of vectors.lines) {
  it(`reads ${JSON.stringify(line)}${snowflake ? ' as ' + snowflake : ''} as the command does`, () => {
    const layout = snowflake && layoutOf(snowflake);
    const got = idsIn(line).flatMap((id) =>
      identify(id.id, vectors.now_ms, layout).map((kind) => asGo(id, kind)),
    );
    assert.deepEqual(got, found);
  });
}

it('refuses layouts that cannot be read', () => {
  for (const [text, why] of Object.entries({
    '': /epoch/,
    nope: /epoch/,
    '2020-01-01': /named time/,
    '2020-01-01,time=41,time=2': /named time/,
    '2020-01-01,time=41,machine=0': /machine=10/,
    '2020-01-01,time=41,machine=24': /65 bits/,
    '2020-01-01,time=41,unit=x': /duration/,
  }))
    assert.throws(() => layoutOf(text), why);
});

it('the fields of each kind fill it', () => {
  for (const { line, snowflake, found } of vectors.lines) {
    for (const { id } of found) {
      for (const { kind, bits, fields } of identify(
        id,
        vectors.now_ms,
        snowflake && layoutOf(snowflake),
      )) {
        const size = fields.reduce((sum, [, n]) => sum + n, 0);
        assert.equal(size, bits ? bits.width : id.replaceAll('.', '').length, `${line}: ${kind}`);
      }
    }
  }
});

it('docs/inspect.html is what `npm run page` writes', () => {
  assert.equal(read('../../../docs/inspect.html'), page());
});
