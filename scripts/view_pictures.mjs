// Makes the pictures of README.md and docs/view.md from recorded runs, into docs/pictures:
//   node scripts/view_pictures.mjs [DATA [NAME...]]       only these; default: ../shared/data; TACHO_BUILD as for the tests (build)
// They are made when the page changes, not in CI.
import { execFileSync, spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, folder, open, settled, start, stop } from '../tests/view_page/harness.mjs';

const source = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const data = path.resolve(process.argv[2] ?? path.join(source, '../shared/data'));
const tacho = process.env.TACHO ?? path.join(build, 'bin/tacho');
const pages = new Map();
const page = (file) => {
  if (!pages.has(file)) {
    pages.set(file, path.join(folder, `${pages.size}-picture.html`));
    execFileSync(tacho, ['view', path.join(data, file), '-o', pages.get(file)]);
  }
  return pages.get(file);
};
// Two runs compared need tacho to answer.
const servers = [];
const compared = (...files) =>
  new Promise((done, failed) => {
    const child = spawn(tacho, ['view', ...files.map((file) => path.join(data, file)), '--no-open', '--port', '0'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    servers.push(child);
    child.stdout.once('data', (text) => done(String(text).trim()));
    child.once('exit', (code) => failed(new Error(`tacho view ended with ${code}`)));
  });
const asked = async (on) => on.waitForFunction(() => window.tacho.panel().settled());
const kAmd = 'traces/rocprofv3_gfx950_results.json.gz';
const kH100 = 'traces/kineto_h100_qwen1.5-0.5b.json.gz';
const kMi300x = 'traces/kineto_mi300x_qwen1.5-0.5b.json.gz';

await start();
const kSize = { width: 1360, height: 820 };
for (const [name, file, hash, colorScheme, act, viewport = kSize] of [
  ['view-overview', kAmd, 'view=overview', 'light'],
  [
    'view-timeline',
    kH100,
    'view=timeline&from=19900000&to=20500000',
    'dark',
    async (on) => {
      // The longest kernel in view, with what launched it.
      const row = await on.evaluate(async () => {
        const { app } = window.tacho;
        const tables = await app.source.span(0, app.from, app.to);
        const text = tables.kernels[0].text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
        const { hits } = await app.source.search(0, `^${text}$`, true, null);
        return hits.find((hit) => hit.start > app.from + (app.to - app.from) * 0.1).row;
      });
      await on.evaluate((id) => window.tacho.app.select(id), row);
      await on.waitForFunction(() => window.tacho.app.slice !== null);
      await settled(on);
    },
  ],
  [
    'view-kernels',
    kAmd,
    'view=kernels',
    'light',
    async (on) => {
      await on.locator('.kernels .row').first().click();
      await on.locator('.plots .facts').waitFor();
    },
  ],
  [
    'view-flame',
    kH100,
    'view=flame&flame=gpu.functions',
    'light',
    async (on) => {
      await asked(on);
      // Into one layer of the model.
      const box = await on.evaluate(() =>
        window.tacho
          .panel()
          .drawn()
          .find((each) => /DecoderLayer/.test(each.label)),
      );
      const area = await on.locator('#canvas').boundingBox();
      await on.mouse.click(area.x + box.x + box.w / 2, area.y + box.depth * 19 + 10);
      const operator = await on.evaluate(
        () =>
          window.tacho
            .panel()
            .drawn()
            .filter((each) => each.label.startsWith('aten::'))
            .sort((x, y) => y.w - x.w)[0],
      );
      await on.mouse.move(area.x + operator.x + operator.w / 2, area.y + operator.depth * 19 + 10);
    },
  ],
  ['view-diff', [kH100, kMi300x], 'view=diff&diff=0.1.table.operator', 'light', asked],
  [
    'view-flame-diff',
    [kH100, kMi300x],
    'view=diff&diff=0.1.flame&flame=gpu.operators',
    'dark',
    async (on) => {
      await asked(on);
      const area = await on.locator('#canvas').boundingBox();
      const box = await on.evaluate(
        () =>
          window.tacho
            .panel()
            .drawn()
            .filter((each) => each.label === 'aten::mm')
            .sort((x, y) => y.w - x.w)[0],
      );
      await on.mouse.move(area.x + box.x + box.w / 2, area.y + box.depth * 19 + 10);
    },
  ],
  [
    'view-sql',
    [kH100],
    'view=sql',
    'light',
    async (on) => {
      await on.fill(
        'textarea[aria-label=SQL]',
        "SELECT start, duration, name FROM tacho.dispatch WHERE name LIKE '%gemm%' ORDER BY start",
      );
      await on.click('button.primary');
      const press = (name) => on.locator('.sql .work').getByRole('button', { name, exact: true }).click();
      await press('Plot');
      await press('Points');
      const mark = await on.evaluate(() =>
        window.tacho
          .panel()
          .drawn()
          .marks.reduce((best, each) => (each.y > best.y ? each : best)),
      );
      const area = await on.locator('.sql canvas').boundingBox();
      await on.mouse.move(area.x + mark.left, area.y + mark.top);
    },
  ],
  ['view-ranks', 'ranks4', 'view=ranks', 'light', (on) => on.locator('.arrivals svg').waitFor()],
  [
    'view-counters',
    'workloads/vcopy/MI200',
    '',
    'dark',
    async (on) => {
      await on.locator('nav[aria-label="contents"] a[href="#sol"]').click();
      await on.locator('svg[data-chart="roofline"]').waitFor();
    },
  ],
  [
    'view-roofline',
    'workloads/vcopy/MI200',
    '',
    'light',
    async (on) => {
      await on.locator('nav[aria-label="contents"] a[href="#memory"]').click();
      await on.locator('svg[data-chart="roofline"]').waitFor();
    },
    { width: 1360, height: 1240 },
  ],
]) {
  if (process.argv.length > 3 && !process.argv.slice(3).includes(name)) continue;
  const opened = await open(Array.isArray(file) ? await compared(...file) : page(file), {
    hash,
    colorScheme,
    viewport,
  });
  await opened.page.waitForTimeout(600);
  if (hash.includes('timeline')) await settled(opened.page);
  if (act !== undefined) await act(opened.page);
  await opened.page.waitForTimeout(400);
  await opened.page.screenshot({ path: path.join(source, 'docs/pictures', `${name}.png`) });
  await opened.close();
  console.log(`docs/pictures/${name}.png`);
}
servers.forEach((each) => each.kill('SIGINT'));
await stop();
