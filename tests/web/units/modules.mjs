// Modules of web/src for node's test runner: esbuild, which Vite brings, turns their TypeScript into JavaScript.
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const source = process.env.TACHO_SOURCE ?? path.resolve(here, '../../..');
const build = process.env.TACHO_BUILD ?? path.join(source, 'build');
const vite = createRequire(path.join(build, 'web', 'package.json')).resolve('vite/package.json');
const esbuild = createRequire(vite)('esbuild');

const folder = mkdtempSync(path.join(tmpdir(), 'tacho-web-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

/** What web/src/NAME.ts exports. */
export async function load(name) {
  const outfile = path.join(folder, `${name.replaceAll('/', '_')}.mjs`);
  await esbuild.build({
    entryPoints: [path.join(source, 'web/src', `${name}.ts`)],
    bundle: true,
    format: 'esm',
    logLevel: 'error',
    outfile,
  });
  return import(pathToFileURL(outfile));
}
