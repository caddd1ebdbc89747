// What the tests of the report's page share: the program, its data, a browser without a network.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const here = path.dirname(fileURLToPath(import.meta.url));
const source = process.env.TACHO_SOURCE ?? path.resolve(here, '../..');
export const build = process.env.TACHO_BUILD ?? path.join(source, 'build');
export const tacho = path.join(build, 'bin/tacho');
const data = process.env.TACHO_DATA ?? path.resolve(source, '../shared/data');
export const workloads = path.join(data, 'workloads');

if (!existsSync(workloads)) {
  const text = `no test data at ${workloads} (set TACHO_DATA)`;
  if (process.env.TACHO_REQUIRE_DATA === '1') throw new Error(text);
  console.log(`SKIPPED: ${text}`);
  process.exit(77);
}
const chromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
if (chromium === undefined) {
  const text = 'no Chromium (apt-get install chromium)';
  if (process.env.TACHO_REQUIRE_DATA === '1') throw new Error(text);
  console.log(`SKIPPED: ${text}`);
  process.exit(77);
}
const playwright = createRequire(path.join(build, 'web/package.json'))('playwright-core');

export const folder = mkdtempSync(path.join(tmpdir(), 'tacho-web-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const run = promisify(execFile);
export const analyze = async (...args) => (await run(tacho, ['analyze', ...args], { maxBuffer: 1 << 29 })).stdout;
export const json = async (...args) => JSON.parse(await analyze(...args, '--output-format', 'json'));

let pages = 0;
/** Makes a report; its file. */
export async function html(...args) {
  const file = path.join(folder, `${++pages}.html`);
  await analyze(...args, '--output-format', 'html', '--output-name', file);
  return file;
}

let browser;
export async function start() {
  browser = await playwright.chromium.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-gpu'] });
}
export async function stop() {
  await browser?.close();
}

/** Opens a page; whatever it loads beyond itself, and every error it makes, fails the test at the end. */
export async function open(address, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1400, height: 900 },
    offline: address.startsWith('/'),
    ...options,
  });
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(`console: ${message.text()}`);
  });
  const url = address.startsWith('/') ? `file://${address}` : address;
  page.on('request', (request) => {
    if (request.url() !== url && !request.url().startsWith('data:')) faults.push(`loads ${request.url()}`);
  });
  await page.goto(url);
  await page.waitForFunction(() => window.tacho !== undefined);
  return {
    page,
    faults,
    async close() {
      await context.close();
      if (faults.length > 0) throw new Error(faults.join('\n'));
    },
  };
}

/** Opens a file that is no report of ours, as an SVG. */
export async function openPlain(file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, offline: true, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on('request', (request) => {
    if (request.url() !== `file://${file}`) faults.push(`loads ${request.url()}`);
  });
  await page.goto(`file://${file}`);
  return {
    page,
    async close() {
      await context.close();
      if (faults.length > 0) throw new Error(faults.join('\n'));
    },
  };
}

const settle = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Sets the filters of the page as a user does. */
export async function choose(page, { normalisation, time, dispatches, kernels }) {
  if (normalisation !== undefined) await page.click(`button[data-norm="${normalisation}"]`);
  if (time !== undefined) await page.selectOption('select[aria-label="time unit"]', time);
  if (dispatches !== undefined) await page.fill('input[aria-label="dispatches"]', dispatches);
  if (kernels !== undefined) {
    const reset = page.getByText('show all kernels').first();
    if (await reset.isVisible()) await reset.click();
    for (const kernel of kernels)
      await page.locator('table[data-table="0.1"]').first().locator('tbody tr').nth(kernel).locator('input').click();
  }
  await settle(page);
}

/** The page's tables, in the numbers behind what it shows: {id of the table: {id of the row: cells}}. */
export const shownTables = (page, run = 0) =>
  page.evaluate(
    (at) =>
      Object.fromEntries(
        // tacho view has the report as one of its views.
        Object.entries((window.tacho.app?.analysis ?? window.tacho).tables[at]).map(([table, rows]) => [
          table,
          Object.fromEntries(
            Object.entries(rows).map(([id, cells]) => [
              id,
              cells.map((cell) => (cell === Infinity ? 'inf' : cell === -Infinity ? '-inf' : cell)),
            ]),
          ),
        ]),
      ),
    run,
  );

const close = (a, b) =>
  a === b ||
  (typeof a === 'number' && typeof b === 'number' && Math.abs(a - b) <= 1e-12 * Math.max(Math.abs(a), Math.abs(b)));

/** Every cell of every table of the document stands in `tables`; returns how many numbers were compared. */
export function compareTables(document, tables) {
  let numbers = 0;
  const differing = [];
  for (const table of document.tables) {
    if (['0.1', '0.2', '1.1'].includes(table.id)) continue;
    for (const row of table.rows) {
      const cells = tables[table.id]?.[row.id];
      row.cells.forEach((cell, c) => {
        if (typeof cell === 'number') ++numbers;
        if (cells === undefined || !close(cell, cells[c]))
          differing.push(`${row.id} ${row.slug} ${table.columns[c]}: ${cell} in JSON, ${cells?.[c]} in the page`);
      });
    }
  }
  if (differing.length > 0) throw new Error(`${differing.length} cells differ:\n${differing.slice(0, 10).join('\n')}`);
  return numbers;
}
