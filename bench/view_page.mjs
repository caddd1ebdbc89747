// What the page of tacho view takes in headless Chromium without a GPU, at 1600x900:
//   node bench/view_page.mjs FILE...        each FILE: anything that tacho view reads, or a self-contained page (.html)
// First paint of the overview, frames while panning and zooming over the whole run, memory of page and server, a search.
// Environment: TACHO (bin/tacho), TACHO_NODE_MODULES (the folder with node_modules/playwright-core), SECONDS per movement.
import { spawn } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const source = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const build = process.env.TACHO_BUILD ?? path.join(source, 'build');
const tacho = process.env.TACHO ?? path.join(build, 'bin/tacho');
const playwright = createRequire(path.join(process.env.TACHO_NODE_MODULES ?? path.join(build, 'web'), 'package.json'))(
  'playwright-core',
);
const seconds = Number(process.env.SECONDS ?? 4);
const files = process.argv.slice(2);
if (files.length === 0) {
  console.error('usage: node bench/view_page.mjs FILE...');
  process.exit(1);
}

async function serve(file) {
  const child = spawn(tacho, ['view', file, '--no-open'], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  const address = await new Promise((done, failed) => {
    const read = (data) => {
      text += data;
      const found = /http:\/\/\S+token=\S+/.exec(text);
      if (found !== null) done(found[0]);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('exit', (code) => failed(new Error(`tacho view ended with ${code}: ${text}`)));
  });
  return { child, address };
}
const memory = (pid) => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const of = (key) => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024;
  return `${of('RssAnon').toFixed(0)} MiB of its own, ${of('VmHWM').toFixed(0)} MiB at most with files`;
};
const quantile = (values, share) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
};

const browser = await playwright.chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--enable-precise-memory-info'],
});
for (const file of files) {
  const html = file.endsWith('.html');
  const began = performance.now();
  const server = html ? null : await serve(file);
  const page = await (await browser.newContext({ viewport: { width: 1600, height: 900 } })).newPage();
  const opened = performance.now();
  await page.goto(html ? `file://${path.resolve(file)}` : server.address);
  await page.waitForSelector('.headline', { timeout: 120000 });
  const painted = performance.now();
  console.log(`\n${path.basename(file)}  ${(statSync(file).size / 2 ** 20).toFixed(1)} MiB`);
  if (server !== null) console.log(`  tacho serves after      ${(opened - began).toFixed(0)} ms`);
  console.log(
    `  overview painted after  ${(painted - opened).toFixed(0)} ms of the page${server === null ? '' : `, ${(painted - began).toFixed(0)} ms of the command`}`,
  );
  await page.waitForFunction(
    () => (window.tacho.app.current.ready ?? 1) >= 1 && window.tacho.app.overview.provisional !== true,
    undefined,
    { timeout: 600000 },
  );
  if (server !== null) console.log(`  index complete after    ${(performance.now() - began).toFixed(0)} ms`);
  await page.evaluate(() => (window.tacho.app.view = 'timeline'));
  await page.waitForFunction(() => window.tacho.timeline() && window.tacho.app.tiles.settled);
  const run = await page.evaluate(() => ({
    events: window.tacho.app.current.events,
    rows: window.tacho.app.shown.rows.length,
    length: window.tacho.app.length,
  }));
  console.log(`  ${run.events.toLocaleString('en-US')} events, ${run.rows} rows, ${(run.length / 1e9).toFixed(3)} s`);

  const all = [];
  for (const [what, start, move, by] of [
    ['zoom in', 1, 'zoom', 0.985],
    ['pan', 0.01, 'pan', 14],
    ['zoom out', 1e-5, 'zoom', 1.015],
    ['pan, zoomed in', 1e-5, 'pan', -14],
    ['scroll', 0.3, 'scroll', 5],
  ]) {
    const { intervals, took } = await page.evaluate(
      async ([share, kind, value, time]) => {
        const { app } = window.tacho;
        const timeline = window.tacho.timeline();
        const span = app.length * share;
        timeline.set(app.length / 2 - span / 2, app.length / 2 + span / 2, 0);
        await new Promise((done) => setTimeout(done, 300));
        const move = {
          zoom: () => timeline.zoom(value, 600),
          pan: () => timeline.pan(value),
          scroll: () => timeline.set(timeline.from, timeline.to, timeline.scroll + value),
        }[kind];
        const intervals = [];
        const first = timeline.frames.length;
        timeline.frames.splice(0, first);
        const began = performance.now();
        let last = began;
        while (performance.now() - began < time * 1000) {
          move();
          await new Promise((done) => requestAnimationFrame(done));
          const now = performance.now();
          intervals.push(now - last);
          last = now;
        }
        return { intervals, took: timeline.frames.map((each) => each.took) };
      },
      [start, move, by, seconds],
    );
    all.push(...intervals);
    console.log(
      `  ${what.padEnd(16)} ${String(intervals.length).padStart(4)} frames, every ${quantile(intervals, 0.5).toFixed(1)} ms (p99 ${quantile(intervals, 0.99).toFixed(1)}); drawing ${quantile(took, 0.5).toFixed(1)} ms (p99 ${quantile(took, 0.99).toFixed(1)})`,
    );
  }
  console.log(
    `  all movements    ${(1000 / quantile(all, 0.5)).toFixed(0)} frames/s median, p99 ${quantile(all, 0.99).toFixed(1)} ms`,
  );
  const name = await page.evaluate(
    () => window.tacho.app.overview.kernels?.[0]?.text ?? window.tacho.app.overview.calls_top?.[0]?.text ?? 'a',
  );
  const search = await page.evaluate(async (text) => {
    const began = performance.now();
    await window.tacho.app.source.search(0, text.slice(0, 40).replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), false, null);
    return performance.now() - began;
  }, name);
  console.log(`  search, first hits      ${search.toFixed(0)} ms`);
  const heap = await page.evaluate(() => [
    performance.memory.usedJSHeapSize / 2 ** 20,
    window.tacho.app.tiles.heldBytes / 2 ** 20,
  ]);
  console.log(`  page's heap ${heap[0].toFixed(0)} MiB, its tiles ${heap[1].toFixed(1)} MiB`);
  if (server !== null) {
    console.log(`  tacho: ${memory(server.child.pid)}`);
    const gone = new Promise((done) => server.child.on('exit', done));
    server.child.removeAllListeners('exit');
    server.child.kill('SIGINT');
    await Promise.race([gone, new Promise((done) => setTimeout(done, 3000))]);
  }
  await page.context().close();
}
await browser.close();
