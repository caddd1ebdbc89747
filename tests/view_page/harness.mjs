// What the tests of tacho view's page share: the page, a server that answers for a random trace, a browser.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { answer, embedded } from './trace.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
export const source = process.env.TACHO_SOURCE ?? path.resolve(here, '../..');
export const build = process.env.TACHO_BUILD ?? path.join(source, 'build');
const page = readFileSync(process.env.TACHO_VIEW_PAGE ?? path.join(source, 'web/dist/view.html'), 'utf8');

const chromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
if (chromium === undefined) {
  const text = 'no Chromium (apt-get install chromium)';
  if (process.env.TACHO_REQUIRE_DATA === '1') throw new Error(text);
  console.log(`SKIPPED: ${text}`);
  process.exit(77);
}
const playwright = createRequire(path.join(process.env.TACHO_NODE_MODULES ?? path.join(build, 'web'), 'package.json'))(
  'playwright-core',
);

export const folder = mkdtempSync(path.join(tmpdir(), 'tacho-view-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const fill = (start, data) =>
  page.replace('/*TACHO_START*/null', () => JSON.stringify(start)).replace('/*TACHO_DATA*/', () => data);
export const servedPage = () =>
  fill({ served: true, version: 'test' }, '').replace("connect-src 'none'", () => "connect-src 'self'");

/** A server of the contract for one trace; `delay` in ms before each tile. */
export async function serve(trace, { most = 4096, delay = 0 } = {}) {
  const asked = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://127.0.0.1');
    if (url.pathname === '/') {
      response.setHeader('content-type', 'text/html; charset=utf-8');
      response.end(servedPage());
      return;
    }
    asked.push(url.pathname + url.search);
    const token = request.headers['x-tacho-token'];
    const body = token === 'T' ? answer(trace, url, most) : { status: 403, error: 'The token is missing.' };
    const send = () => {
      if (Buffer.isBuffer(body)) {
        response.setHeader('content-type', 'application/octet-stream');
        response.end(body);
      } else {
        response.statusCode = body === null ? 404 : (body.status ?? 200);
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify(body ?? { error: 'There is no such thing.' }));
      }
    };
    if (delay > 0 && url.pathname === '/api/tiles') setTimeout(send, delay);
    else send();
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  server.unref(); // whoever forgets to close it still ends
  return {
    address: `http://127.0.0.1:${server.address().port}/?token=T`,
    asked,
    close: () =>
      new Promise((done) => {
        server.close(done);
        server.closeAllConnections();
      }),
  };
}

let files = 0;
/** The self-contained page of a trace; its file. */
export function selfContained(trace) {
  const file = path.join(folder, `${++files}.html`);
  writeFileSync(file, fill({ served: false, version: 'test' }, embedded(trace)));
  return file;
}

let browser;
export async function start() {
  browser = await playwright.chromium.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-gpu'] });
}
export async function stop() {
  await browser?.close();
}

const viewIsThere = () => window.tacho?.app.overview !== null && window.tacho?.app.overview !== undefined;

/** Opens an address or a file. Errors in the page fail the test, and any request of a file beyond itself. `ready`: when it is open. */
export async function open(address, { hash = '', allow = [], ready = viewIsThere, ...options } = {}) {
  const file = address.startsWith('/');
  const context = await browser.newContext({
    viewport: { width: 1600, height: 900 },
    offline: file,
    reducedMotion: 'reduce',
    ...options,
  });
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('console', (message) => {
    // The tests read the canvas back; the page does not.
    if (message.text().includes('willReadFrequently')) return;
    if (['error', 'warning'].includes(message.type()) && !allow.some((each) => message.text().includes(each)))
      faults.push(`console: ${message.text()}`);
  });
  const url = (file ? `file://${address}` : address) + (hash === '' ? '' : `#${hash}`);
  const origin = file ? `file://${address}` : new URL(address).origin;
  page.on('request', (request) => {
    const to = request.url();
    if (file ? to.split('#')[0] !== origin : !to.startsWith(origin))
      if (!to.startsWith('data:')) faults.push(`loads ${to}`);
  });
  await page.goto(url);
  await page.waitForFunction(ready);
  return {
    page,
    faults,
    async close() {
      await context.close();
      if (faults.length > 0) throw new Error(faults.join('\n'));
    },
  };
}

/** Waits until the timeline has drawn everything it asked for. */
export const settled = (page) =>
  page.evaluate(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    for (let i = 0; i < 600; ++i) {
      await frame();
      const { app, timeline } = window.tacho;
      if (
        timeline() !== null &&
        timeline() !== undefined &&
        app.goal === null &&
        !timeline().moving &&
        app.tiles.settled &&
        app.names.settled
      ) {
        await frame();
        if (app.tiles.settled) return;
      }
      await new Promise((done) => setTimeout(done, 10));
    }
    throw new Error('the timeline does not settle');
  });
