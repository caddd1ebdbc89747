// The page of tacho view on recorded runs, served by tacho and self-contained: numbers shown equal those of tacho query, and
// the two sources draw the same.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { open, settled, start, stop } from './harness.mjs';
import { data, query, serve, write } from './program.mjs';

const files = ['traces/kineto_h100_qwen1.5-0.5b.json.gz', 'traces/kineto_mi300x_resnet_checkpoint.json.gz', 'traces/rocprofv3_gfx950_results.json.gz'].map((each) => path.join(data, each));

before(start);
after(stop);

const whole = (text) => Number(text.replace(/[^0-9.]/g, ''));

for (const file of files)
  test(`${path.basename(file)}: numbers equal tacho query, and both sources draw the same`, async () => {
    const page = await write(file);
    assert.ok(statSync(page).size < 12 << 20);
    const drawn = [];
    for (const address of [await serve(file), page]) {
      const opened = await open(address, { hash: 'view=kernels' });
      const on = opened.page;
      await on.waitForFunction(() => (window.tacho.app.current.ready ?? 1) >= 1 && window.tacho.app.overview.provisional !== true);
      const shown = async (expected, count) => {
        await on.waitForFunction((rows) => window.tacho.app.kernelsListed === rows, count);
        // The rows are virtual: scroll through all of them.
        const rows = new Map();
        for (let top = 0; ; top += 300) {
          await on.evaluate((y) => (document.querySelector('.kernels .scroll').scrollTop = y), top);
          await on.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
          for (const row of await on.locator('.kernels .row').evaluateAll((all) => all.map((each) => [each.dataset.name, [...each.children].map((cell) => cell.title || cell.textContent)]))) rows.set(row[0], row[1]);
          if (await on.evaluate(() => { const box = document.querySelector('.kernels .scroll'); return box.scrollTop + box.clientHeight >= box.scrollHeight - 1; })) break;
        }
        const numbers = [...rows.values()].map(([, , total, launches, , least, most]) => [whole(launches), whole(total), whole(least), whole(most)].join(' ')).sort();
        assert.deepEqual(numbers, expected.map((row) => row.slice(1, 5).join(' ')).sort());
      };
      const all = await query(file, 'SELECT name, count(*), sum(duration), min(duration), max(duration) FROM tacho.dispatch GROUP BY name');
      assert.ok(all.length > 5);
      await shown(all, all.length);

      // A span: exactly the parts of launches that lie in it.
      const { t0, length } = await on.evaluate(() => ({ t0: window.tacho.app.current.t0, length: window.tacho.app.length }));
      const [from, to] = [Math.floor(length * 0.4), Math.floor(length * 0.47)];
      const [a, b] = [BigInt(t0) + BigInt(from), BigInt(t0) + BigInt(to)];
      const part = `(min("end", ${b}) - max(start, ${a}))`;
      const within = await query(file, `SELECT name, count(*), sum(${part}), min(${part}), max(${part}) FROM tacho.dispatch WHERE start < ${b} AND "end" > ${a} GROUP BY name`);
      await on.evaluate((span) => window.tacho.app.choose(span, true), [from, to]);
      await shown(within, within.length);
      await on.evaluate(() => window.tacho.app.choose(null, true));

      // The overview's calls, and what a search counts.
      await on.evaluate(() => (window.tacho.app.view = 'overview'));
      const calls = await query(file, "SELECT api.name, count(*), sum(duration), min(duration), max(duration) FROM tacho.api JOIN tacho.function ON api.dim = function.id WHERE domain NOT IN ('operator', 'python') GROUP BY api.name ORDER BY 3 DESC LIMIT 10");
      const table = await on.locator('table[data-kind="api"] tbody tr').evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.title || cell.textContent)));
      assert.deepEqual(table.map(([, , total, count, , least, most]) => [whole(count), whole(total), whole(least), whole(most)]).sort(), calls.map((row) => row.slice(1, 5)).sort());
      const found = await on.evaluate(async () => {
        const { app } = window.tacho;
        const kernel = (await app.source.span(0, 0, app.length)).kernels[0];
        const { names } = await app.source.search(0, `^${kernel.text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`, true, null);
        return [names.reduce((sum, each) => sum + each.count, 0), names.reduce((sum, each) => sum + each.total, 0)];
      });
      assert.deepEqual(found, [...all].sort((x, y) => y[2] - x[2])[0].slice(1, 3));

      // The same pixels from both sources.
      await on.evaluate(() => (window.tacho.app.view = 'timeline'));
      await settled(on);
      const pictures = [];
      for (const [x, y] of [[0, 1], [0.3, 0.35], [0.31, 0.311], [0.5, 0.50005]]) {
        await on.evaluate(([p, q]) => window.tacho.timeline().set(p, q), [length * x, length * y]);
        await settled(on);
        pictures.push(await on.evaluate(() => {
          const controller = window.tacho.timeline();
          const theme = window.tacho.app.colours;
          return window.tacho.app.shown.rows.filter((row) => row.what === 'slices').map((row) => [...controller.line(row.top - controller.scroll + row.first + 1)].map((each) => (each === theme.lane || each === theme.grid || each === theme.outside ? 0 : 1)).join(''));
        }));
      }
      drawn.push(pictures);
      await opened.close();
    }
    drawn[0].forEach((picture, i) =>
      picture.forEach((line, row) => {
        // A bin that is partly covered may be one column beside.
        for (let x = 1; x + 1 < line.length; ++x)
          if (line[x] === '1') assert.ok(drawn[1][i][row].slice(x - 1, x + 2).includes('1'), `view ${i} row ${row} column ${x}`);
      }),
    );
  });

test('what was open around a launch is what the rows say, in both pages', async () => {
  const file = files[0];
  const around = await query(file, `SELECT d.id,
      (SELECT group_concat(o.name, '\n') FROM tacho.api o WHERE o.track = a.track AND o.start <= a.start AND o."end" >= a."end" AND o.id <> a.id),
      (SELECT group_concat(o.name, '\n') FROM tacho.marker o WHERE o.track = a.track AND o.start <= a.start AND o."end" >= a."end")
    FROM tacho.dispatch d JOIN tacho.api a ON a.correlation = d.correlation WHERE d.id % 100 = 7 LIMIT 12`);
  assert.ok(around.length >= 10);
  for (const address of [await serve(file), await write(file)]) {
    const { page, close } = await open(address, { hash: 'view=timeline' });
    await page.waitForFunction(() => (window.tacho.app.current?.ready ?? 1) >= 1 && window.tacho.timeline()?.frames.length > 0);
    for (const [id, calls, markers] of around) {
      const says = await page.evaluate((row) => window.tacho.app.source.slice(0, row), String(id - 1));
      assert.deepEqual([...says.around].sort(), [calls, markers].filter((each) => each !== null).flatMap((each) => each.split('\n')).sort(), `dispatch ${id}`);
    }
    // The details pane shows them, the innermost first.
    const row = String(around[0][0] - 1);
    const [first] = await page.evaluate(async (each) => (await window.tacho.app.source.slice(0, each)).around, row);
    await page.evaluate((each) => window.tacho.app.select(each), row);
    await page.locator('.stack h3', { hasText: 'Open around the launch' }).waitFor();
    assert.equal(await page.locator('.stack li').first().textContent(), first);
    await close();
  }
});
