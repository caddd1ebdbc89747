// Who holds memory, in the page, served and self-contained: its tables are those of tacho memory, its areas add up to what was
// live, and every moment leads to the timeline.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { open, settled, start, stop } from './harness.mjs';
import { data, run, serve, write } from './program.mjs';

before(start);
after(stop);

const h100 = path.join(data, 'traces/kineto_h100_qwen1.5-0.5b.json.gz');
/** Those of the memory with the highest peak: it comes first. */
const tables = async (...words) =>
  Object.fromEntries(
    JSON.parse(await run('memory', h100, '--output-format', 'json', ...words))
      .tables.reverse()
      .map((each) => [each.id, each]),
  );
const exact = (text) => Number(text.replaceAll(',', '').replace(/ B$/, ''));

test('the tables are those of tacho memory, and owners add up to what was live', async () => {
  for (const address of [await serve(h100), await write(h100)]) {
    const { page, close } = await open(address, { hash: 'view=memory' });
    await page.locator('table[data-table="holders"]').waitFor();
    assert.equal(await page.locator('nav button.on').textContent(), 'Memory');
    const memory = await page.evaluate(() => window.tacho.app.extra('memory'));
    for (const by of ['owner', 'line', 'module', 'operator', 'category']) {
      const says = await tables('--by', by);
      // Owners of all modules together.
      const module = by === 'owner' ? says.holders.columns.indexOf('Module') : -1;
      const without = new Map();
      for (const [bytes, percent, count, ...names] of says.holders.rows) {
        if (module >= 0) names.splice(module - 3, 1);
        while (names.length < says.holders.columns.length - 3 - (module >= 0 ? 1 : 0)) names.push(null);
        const known = without.get(JSON.stringify(names)) ?? [0, 0, count === null ? null : 0];
        without.set(JSON.stringify(names), [
          known[0] + bytes,
          known[1] + percent,
          count === null ? null : known[2] + count,
        ]);
      }
      const [place] = memory.places;
      const way = place.by.find((each) => each.by === by);
      assert.equal(way.holders.count, without.size);
      assert.ok(way.holders.rows.length === Math.min(without.size, 200));
      for (const [bytes, percent, count, ...names] of way.holders.rows) {
        while (names.length < way.holders.columns.length - 3) names.push(null);
        const expected = without.get(JSON.stringify(names));
        assert.deepEqual([bytes, count], [expected[0], expected[2]], `${by} ${names}`);
        assert.ok(Math.abs(percent - expected[1]) < 1e-9);
      }
      assert.equal(
        way.unfreed.rows.reduce((sum, row) => sum + row[0], 0),
        says.unfreed.rows.reduce((sum, row) => sum + row[0], 0),
      );
      assert.equal(place.peak, says.places.rows[0][1]);
      assert.equal(Math.max(...place.curve.map((each) => each[0])), place.peak);
      place.curve.forEach(([live], i) =>
        assert.equal(
          way.areas.reduce((sum, area) => sum + area.live[i], 0),
          live,
          `${by} at ${i}`,
        ),
      );
      // At the peak each area has what its row says.
      const at = place.curve.findIndex((each) => each[0] === place.peak);
      const held = new Map(way.holders.rows.map((row) => [JSON.stringify(row.slice(3)), row[0]]));
      const owned = way.areas.filter((area) => area.names.length > 0 && held.has(JSON.stringify(area.names)));
      assert.ok(owned.length > 0);
      for (const area of owned) assert.equal(area.live[at], held.get(JSON.stringify(area.names)), area.name);
    }
    // What is drawn.
    const says = await tables('--by', 'category');
    await page.getByRole('button', { name: 'Categories' }).click();
    const shown = await page
      .locator('table[data-table="holders"] tbody tr')
      .evaluateAll((all) =>
        all.map((row) => [row.cells[1].title, row.querySelector('.of-category').textContent.trim()]),
      );
    for (const [bytes, , , category] of says.holders.rows)
      assert.ok(
        shown.some((row) => exact(row[0]) === bytes && row[1] === category),
        `${category} ${bytes}`,
      );
    assert.equal(
      await page.locator('path.area').count(),
      memory.places[0].by.find((each) => each.by === 'category').areas.length,
    );
    await close();
  }
});

test('moments lead to the timeline and Back leads back; the address keeps the owner', async () => {
  const { page, close } = await open(await write(h100), { hash: 'view=memory&memory=0!operator!' });
  await page.locator('table[data-table="holders"] tbody tr').nth(1).click();
  await page.locator('table[data-table="holders"] tr.on').waitFor();
  const key = await page.locator('table[data-table="holders"] tr.on').getAttribute('data-owner');
  const faded = await page.locator('path.area.faded').count();
  assert.ok(faded > 0 && faded === (await page.locator('path.area').count()) - 1, `${faded} areas faded`);
  const peak = await page.evaluate(async () => (await window.tacho.app.extra('memory')).places[0].peak_at);
  await page.getByRole('button', { name: 'show the peak in the timeline' }).click();
  await settled(page);
  const [from, to, marked] = await page.evaluate(() => {
    const { app } = window.tacho;
    return [app.from, app.to, app.evidence];
  });
  assert.ok(from < peak && peak < to && to - from < 20e6, `${from} ${peak} ${to}`);
  assert.ok(marked[0] <= peak && peak <= marked[1]);
  await page.goBack();
  await page.locator('table[data-table="holders"] tr.on').waitFor();
  assert.equal(await page.locator('table[data-table="holders"] tr.on').getAttribute('data-owner'), key);
  // A pointer over the chart reads that moment; a click goes there.
  const box = await page.locator('svg[data-chart="memory"]').boundingBox();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 80);
  assert.match(await page.locator('.areas .tip').innerText(), /[\d.]+ GiB\s+live at [\d.]+ ms, [\d.]+ GiB reserved/);
  await page.mouse.click(box.x + box.width * 0.6, box.y + 80);
  await page.waitForFunction(() => window.tacho.app.view === 'timeline');
  await close();
});

test('the tab fits its screens', async () => {
  const file = await write(h100);
  for (const [width, height] of [
    [1000, 700],
    [1440, 900],
    [1920, 1080],
  ])
    for (const colorScheme of ['light', 'dark']) {
      const { page, close } = await open(file, { hash: 'view=memory', viewport: { width, height }, colorScheme });
      await page.locator('path.area').first().waitFor();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${wide} of ${width}`);
      const beyond = await page
        .locator('.memory section')
        .evaluateAll((all) => all.filter((each) => each.scrollWidth > each.clientWidth + 1).length);
      assert.equal(beyond, 0, `${beyond} tables are cut at ${width}`);
      await close();
    }
});
