// The rows of testdata/life.json hold for the client, and for none of the wrong ones.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { rowsOf } from './life.js';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

// check returns the rows that do not hold for the client in a folder.
function check(folder) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [path('life.js'), folder], {
    env: { ...process.env, LC_ALL: 'tr_TR.UTF-8', LANG: 'tr_TR.UTF-8' }, encoding: 'utf8',
  });
  assert.equal(status, stdout ? 1 : 0, stderr);
  return stdout;
}

it('there is a test for each row', () => {
  const { rows } = JSON.parse(readFileSync(path('../../../testdata/life.json')));
  const names = rows.filter((row) => row.clients.includes('javascript')).map((row) => row.name);
  assert.deepEqual(Object.keys(rowsOf({})).sort(), names.sort());
});

it('the rows hold', () => assert.equal(check(path('..')), ''));

// Mistakes as [name, file, row that does not hold, text, replacement, perhaps more of both].
const BLOCK = 'const random = new Uint32Array(1024);';
const CLASS = 'export class TraceflakeIdGenerator {';
const wrong = [
  ['one block for two generators', 'traceflake', 'two generators', BLOCK, '', CLASS, `${BLOCK}\n${CLASS}`],
  ['a snapshot is not noticed', 'traceflake', 'startup snapshot', '{ next = random.length; });', '{});'],
  ['a snapshot restarts the first generator', 'traceflake', 'startup snapshot', 'if (snapshot?.isBuildingSnapshot())', 'if ((globalThis.first ??= this) === this && snapshot?.isBuildingSnapshot())'],
  ['the clock is held for 3 s', 'traceflake', 'clock steps', 'HOLD = 2000', 'HOLD = 3000'],
  ['the clock is held for 1 s', 'traceflake', 'clock steps', 'HOLD = 2000', 'HOLD = 1000'],
  ['lower case of the locale', 'propagator', 'Turkish locale', '.toLowerCase()', '.toLocaleLowerCase(Intl.DateTimeFormat().resolvedOptions().locale)'],
  ['empty settings are set', 'propagator', 'empty settings', " || value === ''", ''],
  ['any flag is possible', 'propagator', 'misspelt settings', "typeof value === 'boolean'", 'true'],
  ['an unknown option is ignored', 'propagator', 'misspelt settings', '!Object.keys(OPTIONS).includes(name)', 'false'],
  ['a property is an option', 'propagator', 'misspelt settings', '!Object.keys(OPTIONS).includes(name)', '!(name in OPTIONS)'],
];

for (const [name, file, row, ...changes] of wrong) {
  it(`wrong: ${name}`, () => {
    const folder = mkdtempSync(path('../node_modules/.life-')); // where it finds the API
    try {
      for (const module of ['traceflake', 'propagator']) {
        let source = readFileSync(path(`../${module}.js`), 'utf8');
        while (module === file && changes.length) {
          const [from, to] = changes.splice(0, 2);
          assert.ok(source.includes(from), `nothing contains ${from}`);
          source = source.replaceAll(from, () => to);
        }
        writeFileSync(join(folder, module + '.js'), source);
      }
      writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
      assert.match(check(folder), new RegExp(`^${row}: `, 'm'));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}
