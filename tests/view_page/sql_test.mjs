// The SQL box of tacho view's page: tables and plots show what tacho query prints, with units, whole cells and NULL told from empty.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { open, start, stop } from './harness.mjs';
import { data, query, serve } from './program.mjs';

const file = path.join(data, 'traces', 'kineto_h100_qwen1.5-0.5b.json.gz');
before(start);
after(stop);

const at = async (options = {}) => {
  const opened = await open(await serve(file), { hash: 'view=sql', ...options });
  await opened.page.waitForFunction(() => document.querySelectorAll('.sql aside .table').length > 20);
  return opened;
};
const ask = async (on, sql) => {
  await on.fill('textarea[aria-label=SQL]', sql);
  const answer = on.waitForResponse((response) => response.url().includes('/api/query'));
  await on.click('button.primary');
  await answer;
  await on.waitForFunction(() => !document.querySelector('.sql').textContent.includes('running …'));
};
const cells = (on) =>
  on.locator('.result tbody tr:has(td)').evaluateAll((rows) =>
    rows.map((row) =>
      [...row.cells].map((cell) => ({
        text: cell.textContent,
        title: cell.title,
        none: cell.classList.contains('null'),
      })),
    ),
  );

test('a table shows the values as they stand, NULL told from empty, and times readable on request', async () => {
  const { page: on, close } = await at();
  const sql =
    "SELECT start, duration, 2048 AS size_bytes, NULL AS none, '' AS empty, 'NULL' AS word, name FROM tacho.dispatch ORDER BY start LIMIT 12";
  const expected = await query(file, sql);
  await ask(on, sql);
  let shown = await cells(on);
  assert.equal(shown.length, 12);
  const t0 = BigInt(await on.evaluate(() => String(window.tacho.app.current.t0)));
  shown.forEach((row, i) => {
    assert.deepEqual(
      row.slice(1, 6).map(({ text }) => text),
      [String(expected[i][1]), '2048', 'NULL', '', 'NULL'],
    );
    assert.deepEqual(
      row.map(({ none }) => none),
      [false, false, false, true, false, false, false],
    );
    assert.equal(row[6].title, expected[i][6]);
    assert.ok(row[0].title.startsWith(`${row[0].text}\n`) && row[0].title.includes('after the beginning of the run'));
  });
  await on.getByRole('button', { name: 'readable' }).click();
  shown = await cells(on);
  const raw = await on.evaluate(
    async (text) => (await window.tacho.app.source.query(0, text)).rows.map((row) => String(row[0])),
    sql,
  );
  const number = (text) => Number(text.split(' ')[0]) * { ns: 1, us: 1e3, ms: 1e6, s: 1e9 }[text.split(' ')[1]];
  shown.forEach((row, i) => {
    assert.ok(Math.abs(number(row[0].text) - Number(BigInt(raw[i]) - t0)) < 0.6, `${row[0].text} ${raw[i]}`);
    assert.ok(Math.abs(number(row[1].text) / expected[i][1] - 1) < 1e-3);
    assert.equal(row[2].text, '2.00 KiB');
    assert.equal(row[3].text, 'NULL');
  });
  await on.getByRole('button', { name: 'raw' }).click();
  assert.equal((await cells(on))[0][1].text, String(expected[0][1]));
  await close();
});

test('the whole of a cell can be read and copied, and so can all rows', async () => {
  const { page: on, close } = await at({ permissions: ['clipboard-read', 'clipboard-write'] });
  const long = `SELECT replace(hex(zeroblob(6000)), '00', 'ab"<b>') || 'end' AS text, 'a' || char(9) || 'b' AS tab, NULL AS none`;
  const [[text]] = await query(file, long);
  await ask(on, long);
  assert.ok((await on.locator('.result td').first().textContent()).length < 500);
  await on.locator('.result td').first().click();
  assert.equal(await on.locator('.whole-cell pre').textContent(), text);
  await on.keyboard.press('Control+c');
  await on.waitForFunction(() => document.querySelector('.sql').textContent.includes('cell copied'));
  assert.equal(await on.evaluate(() => navigator.clipboard.readText()), text);
  await on.keyboard.press('ArrowRight');
  await on.keyboard.press('ArrowRight');
  assert.equal(await on.locator('.whole-cell pre').textContent(), 'NULL');
  await on.keyboard.press('Escape');
  assert.equal(await on.locator('.whole-cell').count(), 0);
  await ask(on, "SELECT 1 AS one, 'x' AS two UNION ALL SELECT 2, NULL");
  await on.locator('.sql .work').getByRole('button', { name: 'copy', exact: true }).click();
  await on.waitForFunction(() => document.querySelector('.sql').textContent.includes('2 rows copied'));
  assert.equal(await on.evaluate(() => navigator.clipboard.readText()), 'one\ttwo\n1\tx\n2\t');
  await close();
});

test('plots draw the rows, their axes have units, and what is pointed at shows its whole row', async () => {
  const { page: on, close } = await at();
  const drawn = () => on.evaluate(() => window.tacho.panel().drawn());
  const press = (name) => on.locator('.sql').getByRole('button', { name, exact: true }).click();
  const sums =
    'SELECT name, count(*) AS launches, sum(duration) AS total_ns FROM tacho.dispatch GROUP BY name ORDER BY total_ns DESC';
  const expected = await query(file, sums);
  await ask(on, sums);
  await press('Plot');
  let plot = await drawn();
  assert.deepEqual([plot.kind, plot.x, plot.y, plot.titles], ['bars', 0, 2, ['name', 'total_ns']]);
  assert.deepEqual(
    plot.marks.map(({ y }) => y),
    expected.map((row) => row[2]),
  );
  assert.ok(
    plot.across.length >= 3 && plot.across.slice(1).every((text) => /^[\d.]+ (ns|us|ms|s)$/.test(text)),
    String(plot.across),
  );
  const over = async (mark) => {
    const box = await on.locator('.sql canvas').boundingBox();
    await on.mouse.move(box.x + mark.left, box.y + mark.top);
    await on.waitForSelector('.row-tip');
    return on
      .locator('.row-tip dl')
      .evaluate((list) =>
        [...list.querySelectorAll('dt')].map((term) => [term.textContent, term.nextElementSibling.textContent]),
      );
  };
  const bar = await over({ left: plot.marks[1].left - 4, top: plot.marks[1].top });
  assert.deepEqual(
    bar.map(([name]) => name),
    ['name', 'launches', 'total_ns'],
  );
  assert.equal(bar[1][1], String(expected[1][1]));
  assert.equal(Number(/\(([\d,]+) ns\)/.exec(bar[2][1])[1].replaceAll(',', '')), expected[1][2]);
  // Another column.
  await on.selectOption('select[aria-label="column of the values"]', '1');
  plot = await drawn();
  assert.deepEqual([plot.titles[1], plot.marks.map(({ y }) => y)], ['launches', expected.map((row) => row[1])]);
  assert.ok(
    plot.across.every((text) => /^[\d.]+$/.test(text)),
    String(plot.across),
  );

  // Points over time, what has no value left out; a moment keeps every digit.
  const points =
    'SELECT start, CASE WHEN id % 5 = 0 THEN NULL ELSE duration END AS duration, name FROM tacho.dispatch ORDER BY name, start';
  await ask(on, points);
  await press('Points');
  plot = await drawn();
  assert.deepEqual(plot.titles, ['start, since the beginning of the run', 'duration']);
  const rows = await on.evaluate(
    async (text) =>
      (await window.tacho.app.source.query(0, text)).rows.map(([start, duration]) => [String(start), duration]),
    points,
  );
  const t0 = BigInt(await on.evaluate(() => String(window.tacho.app.current.t0)));
  const whole = rows.flatMap(([start, duration], row) =>
    duration === null ? [] : [[row, Number(BigInt(start) - t0), duration]],
  );
  assert.ok(whole.length > 1000 && whole.length < rows.length);
  assert.deepEqual(
    plot.marks.map(({ row, x, y }) => [row, x, y]),
    whole,
  );
  assert.ok(
    (await on.locator('.sql').textContent()).includes(`${rows.length - whole.length} rows have no number there`),
  );
  for (const texts of [plot.across, plot.down])
    assert.ok(
      texts.length >= 3 && texts.every((text) => text === '0' || /^[\d.]+ (ns|us|ms|s)$/.test(text)),
      String(texts),
    );
  const top = plot.marks.reduce((best, each) => (each.y > best.y ? each : best));
  const tip = await over(top);
  assert.deepEqual(
    tip.map(([name]) => name),
    ['start', 'duration', 'name'],
  );
  assert.equal(Number(/\(([\d,]+) ns\)/.exec(tip[1][1])[1].replaceAll(',', '')), top.y);
  // Every mark is on the canvas; a line goes from left to right.
  const size = await on.locator('.sql canvas').boundingBox();
  for (const { left, top: y } of plot.marks) assert.ok(left >= 0 && left <= size.width && y >= 0 && y <= size.height);
  await press('Line');
  plot = await drawn();
  assert.ok(plot.marks.every(({ x }, i) => i === 0 || plot.marks[i - 1].x <= x));
  assert.equal(plot.marks.length, whole.length);

  // One value everywhere, negative ones, a single number: axes that say something.
  await ask(on, 'SELECT 1 AS a, -5 AS b UNION ALL SELECT 2, -5');
  plot = await drawn();
  assert.ok(plot.down.length >= 2 && new Set(plot.down).size === plot.down.length, String(plot.down));
  await press('Bars');
  assert.deepEqual(
    (await drawn()).marks.map(({ y }) => y),
    [-5, -5],
  );
  await ask(on, 'SELECT 7 AS only');
  assert.equal(await on.locator('.result td').textContent(), '7');
  await close();
});

test('the tables at the side are the same after a statement named some of them', async () => {
  const address = await serve(file);
  const listed = async () => {
    const { page: on, close } = await open(address, { hash: 'view=sql' });
    await on.waitForFunction(() => document.querySelectorAll('.sql aside .table').length > 20);
    const names = await on
      .locator('.sql aside .table')
      .evaluateAll((all) => all.map((each) => each.textContent.trim()));
    await ask(on, 'SELECT count(*) FROM tacho.dispatch JOIN tacho.api ON true WHERE false');
    await close();
    return names;
  };
  const first = await listed();
  assert.ok(first.includes('tacho.dispatch'));
  assert.equal(new Set(first).size, first.length);
  assert.deepEqual(await listed(), first);
});
