// tacho view beside speedscope on the same data, in headless Chromium without a GPU, at 1600x900:
//   node bench/view_beside.mjs FILE...        each FILE: a trace that tacho reads
// Both are moved by the same wheel events. speedscope gets the trace as Chrome trace events (tacho export -f json), which it
// reads; `npm install speedscope` puts it into a folder's node_modules. Perfetto's interface is in no npm package: what its
// documentation says of its limits is in docs/view.md.
// Environment: TACHO (bin/tacho), TACHO_NODE_MODULES (the folder with node_modules/playwright-core), SPEEDSCOPE (the folder with
// node_modules/speedscope), SECONDS per movement, LIMIT seconds until a page must have painted.
import { execFileSync, spawn } from 'node:child_process';
import { createReadStream, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const source = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const build = process.env.TACHO_BUILD ?? path.join(source, 'build');
const tacho = process.env.TACHO ?? path.join(build, 'bin/tacho');
const playwright = createRequire(path.join(process.env.TACHO_NODE_MODULES ?? path.join(build, 'web'), 'package.json'))(
  'playwright-core',
);
const speedscope = path.join(process.env.SPEEDSCOPE ?? '.', 'node_modules/speedscope');
const seconds = Number(process.env.SECONDS ?? 4);
const limit = Number(process.env.LIMIT ?? 300) * 1000;
const files = process.argv.slice(2);
if (files.length === 0) {
  console.error('usage: node bench/view_beside.mjs FILE...');
  process.exit(1);
}
const folder = mkdtempSync(path.join(tmpdir(), 'tacho-beside-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const quantile = (values, share) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
};

async function serveTacho(file) {
  const child = spawn(tacho, ['view', file, '--no-open', '--port', '0'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const address = await new Promise((done, failed) => {
    child.stdout.once('data', (text) => done(String(text).trim()));
    child.once('exit', (code) => failed(new Error(`tacho view ended with ${code}`)));
  });
  child.removeAllListeners('exit');
  return { address: `${address}#view=timeline`, close: () => child.kill('SIGINT') };
}
async function serveSpeedscope(json) {
  const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json' };
  const root = path.join(speedscope, 'dist/release');
  const server = createServer((request, response) => {
    const name = new URL(request.url, 'http://127.0.0.1').pathname;
    const file = name === '/trace.json' ? json : path.join(root, name === '/' ? 'index.html' : path.basename(name));
    response.setHeader('content-type', types[path.extname(file)] ?? 'application/octet-stream');
    createReadStream(file)
      .on('error', () => response.writeHead(404).end())
      .pipe(response);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const address = `http://127.0.0.1:${server.address().port}/`;
  return {
    address: `${address}#profileURL=${encodeURIComponent(`${address}trace.json`)}`,
    close: () => (server.closeAllConnections(), server.close()),
  };
}

/** One page: painted when `painted` holds in it; wheel events go to what lies in the middle of the window. */
async function measure(what, address, painted) {
  const browser = await playwright.chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--enable-precise-memory-info'],
  });
  try {
    const page = await (await browser.newContext({ viewport: { width: 1600, height: 900 } })).newPage();
    let fault = '';
    page.on('crash', () => (fault ||= "the page's process ended"));
    page.on(
      'console',
      (message) => message.type() === 'error' && (fault ||= message.text().split('\n')[0].slice(0, 160)),
    );
    page.on('pageerror', (error) => (fault ||= error.message.slice(0, 160)));
    const began = performance.now();
    await page.goto(address);
    for (let there = false; !there;) {
      there = await page.evaluate(painted).catch(() => false);
      if (fault !== '' || performance.now() - began > limit) {
        console.log(`  ${what.padEnd(12)} shows nothing: ${fault || `not within ${limit / 1000} s`}`);
        return;
      }
      if (!there) await new Promise((done) => setTimeout(done, 10));
    }
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const shown = performance.now() - began;
    const intervals = await page.evaluate(async (time) => {
      const target = document.elementFromPoint(900, 500);
      const all = [];
      for (const wheel of [{ deltaY: -8, ctrlKey: true }, { deltaX: 14 }, { deltaY: 8, ctrlKey: true }]) {
        let last = performance.now();
        for (const began = last; last - began < time * 1000;) {
          target.dispatchEvent(
            new WheelEvent('wheel', { ...wheel, clientX: 900, clientY: 500, bubbles: true, cancelable: true }),
          );
          await new Promise((done) => requestAnimationFrame(done));
          const now = performance.now();
          all.push(now - last);
          last = now;
        }
      }
      return all;
    }, seconds);
    const heap = await page.evaluate(() => performance.memory.usedJSHeapSize / 2 ** 20);
    console.log(
      `  ${what.padEnd(12)} painted after ${(shown / 1000).toFixed(2)} s; ${(1000 / quantile(intervals, 0.5)).toFixed(0)} frames/s, p99 ${quantile(intervals, 0.99).toFixed(1)} ms; heap ${heap.toFixed(0)} MiB`,
    );
    if (process.env.PICTURES !== undefined)
      await page.screenshot({ path: path.join(process.env.PICTURES, `${what}.png`) });
  } finally {
    await browser.close();
  }
}

const version = JSON.parse(readFileSync(path.join(speedscope, 'package.json'), 'utf8')).version;
console.log(`speedscope ${version}`);
for (const [i, file] of files.entries()) {
  const json = path.join(folder, `${i}.json`);
  execFileSync(tacho, ['export', file, '-f', 'json', '-o', json], { stdio: 'ignore' });
  console.log(
    `${path.basename(file)}  ${(statSync(file).size / 2 ** 20).toFixed(1)} MiB, as JSON ${(statSync(json).size / 2 ** 20).toFixed(1)} MiB`,
  );
  const own = await serveTacho(file);
  await measure(
    'tacho view',
    own.address,
    () => window.tacho?.timeline()?.frames.length > 0 && window.tacho.app.tiles.settled,
  );
  own.close();
  const other = await serveSpeedscope(json);
  await measure(
    'speedscope',
    other.address,
    () =>
      document.title.endsWith('- speedscope') &&
      document.title.length > 14 &&
      document.querySelector('canvas') !== null,
  );
  other.close();
  rmSync(json);
}
