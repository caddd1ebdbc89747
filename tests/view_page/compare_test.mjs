// Two runs or profile folders in one page: it opens on what changed, says whether that is more than noise, and the page that -o
// writes shows what the served one does. Numbers are those of tacho diff, tacho stats and tacho analyze.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { folder, open, start, stop } from './harness.mjs';
import { data, run, serve, write } from './program.mjs';

const [h100, mi300x] = ['kineto_h100_qwen1.5-0.5b.json.gz', 'kineto_mi300x_qwen1.5-0.5b.json.gz'].map((each) =>
  path.join(data, 'traces', each),
);
before(start);
after(stop);

const settled = (page) => page.waitForFunction(() => window.tacho.panel()?.settled?.() === true);
const words = (text) => text.replace(/\s+/g, ' ').trim();
/** Both pages of these files. */
const both = async (...files) => [await serve(...files), await write(...files)];

test('two runs open on what changed, served and in a page of their own', async () => {
  const told = words(await run('diff', h100, mi300x));
  const tables = [];
  for (const address of await both(h100, mi300x)) {
    const { page, close } = await open(address);
    assert.equal(await page.evaluate(() => window.tacho.app.view), 'diff');
    const shown = {};
    for (const by of ['kernel', 'operator', 'api', 'copy', 'marker']) {
      await page.evaluate((what) => window.tacho.app.say('diff', `0.1.table.${what}`), by);
      await settled(page);
      shown[by] = [
        await page.locator('.diff .headline').innerText(),
        (await page.locator('.diff .row').allInnerTexts()).slice(0, 15),
      ];
      assert.ok(shown[by][1].length > 0, by);
    }
    tables.push(shown);
    await page.evaluate(() => window.tacho.app.say('diff', '0.1.table.kernel'));
    await settled(page);
    // The sentence is that of tacho diff.
    const sentence = words(await page.locator('.diff .sentence').innerText());
    assert.ok(sentence.length > 20 && told.includes(sentence), `${sentence}\nis not in\n${told.slice(-400)}`);
    // From a kernel that both ran to both timelines.
    const row = page.locator('.diff .row', { hasText: 'CatArrayBatchedCopy' }).first();
    await row.click();
    await page.getByRole('button', { name: 'show it in both timelines' }).click();
    await page.waitForFunction(() => window.tacho.panel()?.pair?.()?.ready === true);
    await page.waitForFunction(() => window.tacho.panel().pair().b.to - window.tacho.panel().pair().b.from < 5e6);
    const [inA, inB] = await page.evaluate(() => {
      const { a, b } = window.tacho.panel().pair();
      return [a, b].map((app) => ({ from: app.from, to: app.to, kernel: app.kernel?.text ?? '' }));
    });
    assert.ok(inA.kernel.includes('CatArrayBatchedCopy') && inB.kernel.includes('CatArrayBatchedCopy'));
    assert.ok(Math.abs(inA.to - inA.from - (inB.to - inB.from)) < 1, 'they move together');
    assert.ok(inA.to - inA.from < 5e6, 'near the launch');
    // The other way round, and the flame graph.
    await page.getByRole('button', { name: 'swap' }).click();
    await page.getByRole('button', { name: 'What changed' }).click();
    await settled(page);
    assert.match(await page.locator('.diff .headline').innerText(), /\+\d/);
    await page.getByRole('button', { name: 'Flame', exact: true }).last().click();
    await page.waitForFunction(() => window.tacho.panel()?.drawn?.()?.length > 1);
    await close();
  }
  assert.deepEqual(tables[1], tables[0]);
});

test('a page of two runs shows each of them', async () => {
  const { page, close } = await open(await write(h100, mi300x), { hash: 'view=kernels' });
  const kernels = () =>
    page.evaluate(async () => {
      const { app } = window.tacho;
      return (await app.source.span(app.run, 0, app.length)).kernels.map((each) => each.text);
    });
  const first = await kernels();
  await page.locator('select.runs').selectOption('1');
  await page.waitForFunction(() => window.tacho.app.overview !== null && window.tacho.app.run === 1);
  const second = await kernels();
  assert.ok(first.some((each) => each.startsWith('sm90')) && second.some((each) => each.startsWith('Cijk')));
  assert.ok(!second.some((each) => each.startsWith('sm90')));
  for (const view of ['overview', 'timeline', 'code', 'flame']) {
    await page.evaluate((name) => (window.tacho.app.view = name), view);
    await page.locator('main > *').first().waitFor();
  }
  assert.equal(await page.getByRole('button', { name: 'SQL' }).count(), 0);
  await close();
});

test('runs without a GPU are compared by lines and functions, and samples tell noise', async () => {
  const sampled = [];
  for (const [name, n] of [
    ['slow', 1500],
    ['fast', 300],
  ]) {
    const script = path.join(folder, name, 'work.py');
    mkdirSync(path.dirname(script), { recursive: true });
    writeFileSync(
      script,
      `def heavy(n):\n    total = 0\n    for i in range(n * 1000): total += i * i\n    return total\ndef same():\n    return sum(range(6000000))\nfor _ in range(16): heavy(${n})\nfor _ in range(4): same()\n`,
    );
    const file = path.join(folder, `${name}.tacho`);
    await run('trace', '--sampler', 'timer', '-q', '-o', file, '--', '/usr/bin/python3', script);
    sampled.push(file);
  }
  const self = async (file) => {
    const { columns, rows } = JSON.parse(await run('stats', file, '--by', 'function', '--output-format', 'json'));
    const at = (name) => columns.indexOf(name);
    return rows.find((each) => each[at('Name')] === 'heavy')[at('TotalNs')];
  };
  const expected = [await self(sampled[0]), await self(sampled[1])];
  for (const address of await both(...sampled)) {
    const { page, close } = await open(address);
    assert.equal(await page.evaluate(() => window.tacho.app.view), 'diff');
    await settled(page);
    assert.deepEqual(await page.locator('[aria-label="what is compared"] button').allInnerTexts(), [
      'Lines',
      'Functions',
    ]);
    assert.match(await page.locator('.diff .sentence').innerText(), /heavy.*more than noise/);
    await page.getByRole('button', { name: 'Functions' }).click();
    await settled(page);
    const row = page.locator('.diff .row', { hasText: 'heavy' }).first();
    const exact = await row
      .locator('span.n')
      .evaluateAll((all) => all.map((each) => each.title.replace(/[^0-9]/g, '')));
    assert.ok(exact.includes(String(expected[0])) && exact.includes(String(expected[1])), `${exact} ${expected}`);
    await close();
  }
});

test('two profile folders open on their biggest changes, after a sentence', async () => {
  const folders = ['vcopy/MI200', 'vcopy/MI350'].map((each) => path.join(data, 'workloads', each));
  const { comparison } = JSON.parse(
    await run('analyze', '-p', folders[0], '-p', folders[1], '--output-format', 'json'),
  );
  const changed = new Map(comparison.map((each) => [each.id, each.values]));
  for (const address of await both(...folders)) {
    const { page, close } = await open(address, { viewport: { width: 1440, height: 900 } });
    assert.equal(await page.evaluate(() => window.tacho.app.view), 'counters');
    const table = page.locator('table[data-table="changes"]').first();
    await table.waitFor();
    const box = await table.boundingBox();
    assert.ok(box.y < 500, `on the first screen: ${box.y}`);
    const lead = await page.locator('.lead').first().innerText();
    assert.match(words(lead), /^Kernels took .* in .*MI200 and .* in .*MI350 .*vecCopy.* instead of .* noise\.$/);
    const rows = await table.locator('tbody tr').evaluateAll((all) =>
      all.map((row) => ({
        id: row.dataset.change,
        values: [...row.querySelectorAll('td.n[title]')].map((cell) => Number(cell.title)),
      })),
    );
    assert.equal(rows.length, 10);
    const size = ([a, b]) => (a === 0 || b === 0 ? Infinity : Math.abs(Math.log(Math.abs(b / a))));
    let compared = 0;
    for (const [i, row] of rows.entries()) {
      if (i > 0) assert.ok(size(row.values) <= size(rows[i - 1].values) + 1e-9, `${row.id} stands too low`);
      const known = changed.get(row.id);
      if (known === undefined) continue;
      ++compared;
      for (const side of [0, 1])
        assert.ok(Math.abs(row.values[side] - known[side]) <= 1e-6 * Math.abs(known[side]), `${row.id} ${row.values}`);
    }
    assert.ok(compared >= 8, `${compared} compared`);
    // Nothing that all folders have changed more than what stands there.
    const least = size(rows.at(-1).values);
    const larger = comparison.filter(
      ({ values: [a, b] }) => typeof a === 'number' && typeof b === 'number' && a !== b && size([a, b]) > least + 1e-9,
    );
    const seen = new Set(rows.map((row) => row.values.map((value) => value.toPrecision(6)).join()));
    for (const each of larger)
      assert.ok(
        seen.has(each.values.map((value) => value.toPrecision(6)).join()),
        `${each.id} ${each.values} is missing`,
      );
    await close();
  }
});
