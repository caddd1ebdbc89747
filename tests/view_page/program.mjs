// tacho itself, for tests of its page on recorded runs: what it serves, what it writes, and what its other commands say.
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { after } from 'node:test';
import { promisify } from 'node:util';
import { build, folder } from './harness.mjs';

export const tacho = process.env.TACHO ?? path.join(build, 'bin/tacho');
export const data = process.env.TACHO_DATA ?? path.resolve(process.env.TACHO_SOURCE ?? '.', '../shared/data');
if (!existsSync(path.join(data, 'traces'))) {
  const text = `no test data at ${data} (set TACHO_DATA)`;
  if (process.env.TACHO_REQUIRE_DATA === '1') throw new Error(text);
  console.log(`SKIPPED: ${text}`);
  process.exit(77);
}

/** What a command prints. */
export const run = async (...words) => (await promisify(execFile)(tacho, words, { maxBuffer: 1 << 28 })).stdout;
export const query = async (file, sql) => JSON.parse(await run('query', file, sql, '--output-format', 'json')).rows;

const served = [];
after(() => served.forEach((each) => each.kill('SIGINT')));
/** The address at which `tacho view` serves. */
export async function serve(...files) {
  const child = spawn(tacho, ['view', ...files, '--no-open', '--port', '0'], { stdio: ['ignore', 'pipe', 'pipe'] });
  served.push(child);
  let text = '';
  return new Promise((done, failed) => {
    const read = (part) => {
      text += part;
      const found = /http:\/\/\S+token=\S+/.exec(text);
      if (found !== null) done(found[0]);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('exit', (code) => failed(new Error(`tacho view ended with ${code}: ${text}`)));
  });
}
let pages = 0;
/** The page that `tacho view -o` writes. */
export async function write(...files) {
  const page = path.join(folder, `run${++pages}.html`);
  await run('view', ...files, '-o', page);
  return page;
}
