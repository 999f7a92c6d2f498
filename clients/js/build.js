// Writes the CommonJS form of the module and its types: npm run build
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';

const names = [];
const code = readFileSync('traceflake.js', 'utf8').replace(/^export (?=(?:class|function) (\w+))/gm, (_, name) => {
  names.push(name);
  return '';
});
writeFileSync('traceflake.cjs', `'use strict';\n${code}\nmodule.exports = { ${names.join(', ')} };\n`);
copyFileSync('traceflake.d.ts', 'traceflake.d.cts');
