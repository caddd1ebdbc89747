// Operators, modules, lines and functions in the page, served and self-contained: their numbers are those of tacho stats, kernels
// and the rows that launched them lead to each other, and a run without a GPU shows where its time went.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { folder, open, settled, start, stop } from './harness.mjs';
import { data, query, run, serve, write } from './program.mjs';

before(start);
after(stop);

const h100 = path.join(data, 'traces/kineto_h100_qwen1.5-0.5b.json.gz');
const shaped = path.join(data, 'traces/kineto_mi300x_resnet_checkpoint.json.gz');
const stats = async (file, by, ...words) => {
  const { columns, rows } = JSON.parse(await run('stats', file, '--by', by, '--output-format', 'json', ...words));
  return rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));
};
const exact = (text) => Number((/^([0-9,]+) ns$/.exec(text)?.[1] ?? '0').replaceAll(',', ''));
/** The cells of the rows of a table: text, and what its tooltip says. */
const cells = (page, table) =>
  page
    .locator(`table[data-table="${table}"] tbody tr`)
    .evaluateAll((all) =>
      all.map((row) => [
        row.querySelector('bdi').textContent,
        ...[...row.cells].slice(1).map((cell) => cell.title || cell.textContent.trim()),
      ]),
    );
const sum = (list) => list.reduce((all, each) => all + each, 0);

test('operators, modules and lines are those of tacho stats', async () => {
  const operators = await stats(h100, 'operator');
  const modules = await stats(h100, 'module', '--instances');
  const lines = await stats(h100, 'line', '--own-code');
  assert.ok(operators.length > 50 && modules.length > 150 && lines.length > 10);
  for (const address of [await serve(h100), await write(h100)]) {
    const { page, close } = await open(address, { hash: 'view=code' });
    await page.locator('table[data-table="operators"]').waitFor();
    assert.equal(await page.locator('nav button.on').textContent(), 'Operators');
    const shown = await cells(page, 'operators');
    const key = ([name, self, total, kernels, hostSelf, host, calls]) =>
      [name, exact(self), exact(total), kernels, exact(hostSelf), exact(host), calls].join(' ');
    const count = (value) => (value > 0 ? value.toLocaleString('en-US') : '—');
    assert.deepEqual(
      shown.map(key).sort(),
      operators
        .map((of) =>
          [
            of.Name,
            of.SelfDeviceNs,
            of.TotalDeviceNs,
            count(of.Kernels),
            of.SelfHostNs,
            of.TotalHostNs,
            count(of.Calls),
          ].join(' '),
        )
        .sort(),
    );
    assert.equal(shown.at(-1)[0], '(no operator)');

    // Modules of one class are one row, which unfolds.
    await page.getByRole('button', { name: 'Modules' }).click();
    const attention = modules.filter((of) => of.Class === 'Qwen2Attention');
    assert.equal(attention.length, 24);
    const row = page.locator('tr[data-row^="Qwen2Attention "]');
    const self = async () => exact(await row.locator('td').nth(1).getAttribute('title'));
    assert.equal(await self(), sum(attention.map((of) => of.SelfDeviceNs)));
    assert.equal(
      exact(await row.locator('td').nth(2).getAttribute('title')),
      sum(attention.map((of) => of.TotalDeviceNs)),
    );
    assert.ok((await row.textContent()).includes('24 modules'));
    const classes = (await cells(page, 'modules')).length;
    assert.ok(classes < 20, `${classes} rows`);
    await page.getByLabel('unfold Qwen2Attention').click();
    assert.equal((await cells(page, 'modules')).length, classes + 24);
    assert.equal(await page.locator('tr[data-row^="Qwen2Attention_13 "]').count(), 1);

    // Lines of the program's own code.
    await page.getByRole('button', { name: 'Lines' }).click();
    await page.locator('table[data-table="lines"]').waitFor();
    const timed = lines.filter((of) => of.GpuSelfNs > 0 || of.SelfNs > 0);
    assert.deepEqual(
      (await cells(page, 'lines')).map(([name, , own]) => `${name} ${exact(own)}`).sort(),
      timed.map((of) => `${of.Name} ${of.GpuSelfNs}`).sort(),
    );
    await close();
  }
});

test('kernels, operators and lines lead to each other, and the address keeps the row', async () => {
  const page0 = await write(h100);
  const { page, close } = await open(page0, { hash: 'view=code&code=operators!aten%3A%3Amm forward' });
  await page.locator('table[data-table="launched"] tr[data-kernel]').first().waitFor();
  const launched = await page
    .locator('table[data-table="launched"] tbody tr')
    .evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.title || cell.textContent)));
  const total = sum(launched.map((each) => exact(each[1])));
  const says = (await stats(h100, 'operator')).find((of) => of.Name === 'aten::mm');
  assert.ok(total > 0 && total <= says.SelfDeviceNs, `${total} of ${says.SelfDeviceNs}`);
  // To the kernel, and from there back to the operator.
  const name = launched[0][0];
  await page.locator('table[data-table="launched"] tr[data-kernel]').first().click();
  await page.locator('.plots [data-by="operators"]').waitFor();
  assert.equal(await page.evaluate(() => window.tacho.app.kernel.text), name);
  assert.ok((await page.locator('.plots [data-by="operators"]').textContent()).includes('aten::mm'));
  const lines = await page.locator('.plots [data-by="lines"]').textContent();
  assert.match(lines, /modeling_qwen2\.py/, lines);
  await page.locator('.plots [data-by="operators"] button', { hasText: 'aten::mm' }).first().click();
  await page.locator('tr.on[data-row="aten::mm forward"]').waitFor();
  // And to the timeline.
  await page.getByRole('button', { name: 'find it in the timeline' }).click();
  await settled(page);
  assert.equal(await page.evaluate(() => window.tacho.app.query), '^aten::mm$');
  await page.goBack();
  await page.locator('tr.on[data-row="aten::mm forward"]').waitFor();
  await close();
});

test('a sampled run without a GPU shows lines, functions and threads over time', async () => {
  const file = path.join(folder, 'busy.tacho');
  const program = `
import threading, time
def spin(seconds):
    end = time.time() + seconds
    while time.time() < end: sum(range(2000))
def rest():
    time.sleep(0.5)
    spin(0.4)
other = threading.Thread(target=rest); other.start()
spin(0.5)
other.join()
`;
  await run('trace', '--sampler', 'timer', '-q', '-o', file, '--', '/usr/bin/python3', '-c', program);
  const lines = (await stats(file, 'line')).filter((of) => of.SelfNs > 0);
  const sampled = (await query(file, 'SELECT SUM(duration), COUNT(DISTINCT track) FROM tacho.sample'))[0];
  for (const address of [await serve(file), await write(file)])
    for (const width of [1000, 1440]) {
      const { page, close } = await open(address, { viewport: { width, height: 700 } });
      await page.locator('.code-threads svg').first().waitFor();
      assert.ok((await page.locator('.headline').textContent()).includes('of host activity'));
      const threads = await page.evaluate(async () => (await window.tacho.app.extra('code')).threads);
      assert.equal(sum(threads.map((each) => each.host)), sampled[0]);
      assert.equal(threads.length, sampled[1]);
      assert.equal(await page.locator('.code-threads svg').count(), threads.length);
      // No share is beyond one processor, and there is time in both halves of the run.
      for (const each of threads) assert.ok(each.busy.every((share) => share >= 0 && share <= 1));
      const rows = await cells(page, 'host-functions');
      assert.ok(rows.length > 0 && lines.length > 0);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${wide} of ${width}`);
      await page.locator('table[data-table="host-functions"] tbody tr').first().click();
      await page.locator('table[data-table="functions"] tr.on').waitFor();
      await close();
    }
});

test('the roofline of operators has the figures of tacho stats and leads to the timeline', async () => {
  const says = (await stats(shaped, 'operator', '--input-shapes', '--top', '0')).filter((of) => of.Flops != null);
  assert.ok(says.length > 10, `${says.length} operators with a model`);
  for (const address of [await serve(shaped), await write(shaped)]) {
    const { page, close } = await open(address, { hash: 'view=code&code=roofline' });
    await page.locator('table[data-table="roofline"]').waitFor();
    const roofs = await page.evaluate(async () => (await window.tacho.app.extra('operators')).roofline);
    const key = (of) => [of.name, of.phase, of.shapes].join(' ');
    // Of several types of elements the longest counts, as in tacho stats.
    const points = new Map([...roofs.points].reverse().map((of) => [key(of), of]));
    for (const of of says) {
      const point = points.get(key({ name: of.Name, phase: of.Phase, shapes: of.InputShapes ?? '' }));
      assert.ok(point !== undefined, `${of.Name} ${of.InputShapes}`);
      assert.equal(point.flops, of.Flops);
      assert.equal(point.percent ?? null, of.PercentOfRoof);
      assert.equal(Math.round(point.lost ?? -1), of.LostNs ?? -1);
      assert.equal(point.not_judged ?? null, of.NotJudged);
    }
    assert.equal(await page.locator('table[data-table="roofline"] tbody tr').count(), roofs.points.length);
    // Marks stand where their figures say, those without operations on the axis.
    const marks = await page
      .locator('circle.operator')
      .evaluateAll((all) => all.map(({ dataset }) => [Number(dataset.x), Number(dataset.y)]));
    for (const [x, y] of marks) {
      const known = roofs.points.some((of) =>
        of.flops > 0
          ? Math.abs(of.flops / of.bytes - x) < 1e-9 * x && Math.abs(of.flops / of.ns / 1e3 - y) < 1e-9 * y
          : x === 0 && Math.abs(of.bytes / of.ns / 1e3 - y) < 1e-9 * y,
      );
      assert.ok(known, `${x} ${y}`);
    }
    // A mark chooses its row, and the row leads to the longest kernel.
    const longest = roofs.points.find((of) => of.longest !== undefined);
    await page.locator(`tr[data-row^="${longest.name} "]`).first().click();
    assert.equal(await page.locator('circle.operator.on').count(), 1);
    await page.getByRole('button', { name: 'show its longest kernel in the timeline' }).click();
    await settled(page);
    const [from, to, marked] = await page.evaluate(() => {
      const { app } = window.tacho;
      return [app.from, app.to, app.evidence];
    });
    const [, begin, duration] = roofs.points.find((of) => of.longest?.[1] === marked[0]).longest;
    assert.ok(from < begin && begin + duration < to && marked[1] === begin + duration);
    await page.goBack();
    await page.locator('table[data-table="roofline"] tr.on').waitFor();
    await close();
  }
});
