import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { page } from '../inspect/build.js';
import { identify, idsIn } from '../inspect/identify.js';

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

for (const { line, found } of vectors.lines) {
  it(`reads ${JSON.stringify(line)} as the command does`, () => {
    const got = idsIn(line).flatMap((id) =>
      identify(id, vectors.now_ms).map((kind) => {
        const size = kind.fields.reduce((sum, [, n]) => sum + n, 0);
        assert.equal(size, kind.bits?.width ?? id.id.replaceAll('.', '').length, kind.kind);
        return asGo(id, kind);
      }),
    );
    assert.deepEqual(got, found);
  });
}

const placeholders = {
  TRACE: '4bf92f3577b34da6a3ce929d0e0e4736',
  SPAN: '00f067aa0ba902b7',
  PARENT: '05e3ac9a4f6e3b90',
};

// The lines that the command's test reads, and the IDs in each.
for (const file of ['forms', 'reports', 'real']) {
  it(`finds the IDs in the lines of ${file}`, () => {
    const text = read(`../../../cmd/traceflake/internal/identify/testdata/${file}`);
    for (const row of text.split('\n').filter((row) => row.includes(' → '))) {
      const [line, want] = row
        .replace(/TRACE|SPAN|PARENT/g, (name) => placeholders[name])
        .split(' → ');
      const got = idsIn(line).map(({ role, id }) => `${role} ${id}`.trim());
      if (/[0-9a-z-]{13}/i.test(want)) assert.equal(got.join(', '), want, line);
      else assert.deepEqual(got, [], line);
    }
  });
}

it('docs/inspect.html is what `npm run page` writes', () => {
  assert.equal(read('../../../docs/inspect.html'), page());
});
