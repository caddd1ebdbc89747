// Makes the pictures of docs/view.md from recorded runs, into docs/pictures:
//   node scripts/view_pictures.mjs [DATA]       default: ../shared/data; TACHO_BUILD as for the tests (build)
// They are made when the page changes, not in CI.
import { execFileSync } from 'node:child_process';
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
    execFileSync(tacho, ['view', path.join(data, 'traces', file), '-o', pages.get(file)]);
  }
  return pages.get(file);
};
const kAmd = 'rocprofv3_gfx950_results.json.gz';
const kH100 = 'kineto_h100_qwen1.5-0.5b.json.gz';

await start();
for (const [name, file, hash, colorScheme, act] of [
  ['view-overview', kAmd, 'view=overview', 'light'],
  ['view-timeline', kH100, 'view=timeline&from=19900000&to=20500000', 'dark', async (on) => {
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
  }],
  ['view-kernels', kAmd, 'view=kernels', 'light', async (on) => {
    await on.locator('.kernels .row').first().click();
    await on.locator('.plots .facts').waitFor();
  }],
]) {
  const opened = await open(page(file), { hash, colorScheme, viewport: { width: 1360, height: 820 } });
  await opened.page.waitForTimeout(400);
  if (hash.includes('timeline')) await settled(opened.page);
  if (act !== undefined) await act(opened.page);
  await opened.page.waitForTimeout(400);
  await opened.page.screenshot({ path: path.join(source, 'docs/pictures', `${name}.png`) });
  await opened.close();
  console.log(`docs/pictures/${name}.png`);
}
await stop();
