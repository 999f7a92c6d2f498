// Writes docs/inspect.html: npm run page
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

// page returns the page with its script. It loads nothing from elsewhere.
export function page() {
  const {
    outputFiles: [{ text }],
  } = buildSync({
    entryPoints: [path('page.js')],
    bundle: true,
    format: 'iife',
    target: 'es2022',
    charset: 'utf8',
    write: false,
  });
  return readFileSync(path('page.html'), 'utf8').replace('/* script */', () =>
    text.replaceAll('</script', '<\\/script'),
  );
}

if (process.argv[1] === path('build.js')) writeFileSync(path('../../../docs/inspect.html'), page());
