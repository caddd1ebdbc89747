// The flame graph and the comparison of two runs in the page of tacho view: every number equals tacho stats, tacho diff and tacho query, and
// what is chosen holds across views and in the address.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { folder, open, start, stop } from './harness.mjs';
import { data, query, run, serve, tacho, write } from './program.mjs';

const [h100, mi300x, markersOnly] = [
  'kineto_h100_qwen1.5-0.5b.json.gz',
  'kineto_mi300x_qwen1.5-0.5b.json.gz',
  'kineto_cupti_profiler.json.gz',
].map((each) => path.join(data, 'traces', each));
const sampled = ['a.tacho', 'b.tacho'].map((each) => path.join(folder, each));

const python = ['/usr/bin/python3', '/usr/local/bin/python3'].find(existsSync) ?? 'python3';

before(async () => {
  await start();
  const script = path.join(folder, 'sorting.py');
  writeFileSync(
    script,
    'import sys\ndef key(x):\n    total = 0\n    for i in range(300):\n        total += i * x\n    return total\ndef work(n):\n    for _ in range(n):\n        sorted(range(300), key=key)\ndef other(n):\n    for _ in range(n):\n        key(7)\nwork(int(sys.argv[1]))\nother(int(sys.argv[2]))\n',
  );
  execFileSync(tacho, ['sys', 'sample', '-q', '-f', '500', '-o', sampled[0], '--', python, script, '40', '2000'], {
    stdio: 'ignore',
  });
  execFileSync(tacho, ['sys', 'sample', '-q', '-f', '500', '-o', sampled[1], '--', python, script, '10', '9000'], {
    stdio: 'ignore',
  });
});
after(stop);

const json = async (...words) => JSON.parse(await run(...words, '--output-format', 'json'));
// All nodes when they are there; `wait`: none, as callees first there may be hundreds of thousands.
const all = async (on, wait = false) => {
  await on.waitForFunction(
    () => window.tacho?.panel?.()?.settled?.() === true && (window.tacho.panel().drawn() ?? null) !== null,
  );
  return wait ? [] : on.evaluate(() => window.tacho.panel().all());
};
// What nodes have of their own, by the labels of their stack.
const own = (nodes) => {
  const sums = new Map();
  for (const node of nodes)
    if (node.selfHost > 0 || node.selfGpu > 0) {
      const [host, gpu] = sums.get(node.path) ?? [0, 0];
      sums.set(node.path, [host + node.selfHost, gpu + node.selfGpu]);
    }
  return sums;
};
async function stats(file) {
  const sums = new Map();
  for (const [name, , host, , gpu] of (await json('stats', file, '--by', 'stack')).rows) {
    const [x, y] = sums.get(name) ?? [0, 0];
    sums.set(name, [x + host, y + gpu]);
  }
  return sums;
}
const sorted = (map) => [...map].sort();

for (const [file, what] of [
  [() => sampled[0], 'host'],
  [() => h100, 'host'],
  [() => h100, 'gpu'],
])
  test(`flame graph of ${path.basename(file())} by ${what}: stacks equal tacho stats, served and self-contained`, async () => {
    const expected = await stats(file());
    assert.ok(expected.size > 3);
    for (const address of [await serve(file()), await write(file())]) {
      const opened = await open(address, { hash: `view=flame&flame=${what}.interpreter` });
      const on = opened.page;
      const nodes = await all(on);
      assert.deepEqual(sorted(own(nodes)), sorted(expected));
      // Callees first: the same time, by what comes first.
      await on.click('#bottom-up');
      await all(on, true);
      const inverted = await on.evaluate(() =>
        window.tacho
          .panel()
          .all()
          .filter((each) => !each.path.includes(';')),
      );
      assert.equal(inverted[0][what][0], nodes[0][what][0]);
      const first = new Map();
      for (const node of inverted)
        if (node.path !== '' && node[what][0] > 0) first.set(node.path, (first.get(node.path) ?? 0) + node[what][0]);
      const leaves = new Map();
      for (const [name, [host, gpu]] of expected) {
        const [leaf, value] = [name.split(';').at(-1), what === 'host' ? host : gpu];
        if (value > 0) leaves.set(leaf, (leaves.get(leaf) ?? 0) + value);
      }
      assert.deepEqual(sorted(first), sorted(leaves));
      await on.click('#top-down');

      // A click zooms, and the address holds it; Escape goes one level out.
      await on.waitForFunction(() => window.tacho.panel().drawn().length > 4);
      const box = await on.evaluate(
        () =>
          window.tacho
            .panel()
            .drawn()
            .filter((each) => each.depth === 2)[0],
      );
      const area = await on.locator('#canvas').boundingBox();
      await on.mouse.click(area.x + box.x + Math.min(box.w, 40) / 2, area.y + box.depth * 19 + 10);
      await on.waitForFunction((path) => location.hash.includes(`zoom=${path}`), box.path);
      const zoomed = await on.evaluate(
        (path) =>
          window.tacho
            .panel()
            .drawn()
            .find((each) => each.path === path),
        box.path,
      );
      assert.ok(Math.abs(zoomed.w - area.width) < 2);
      const hash = await on.evaluate(() => location.hash.slice(1));
      const again = await open(address, { hash });
      await all(again.page);
      assert.deepEqual(
        await again.page.evaluate(() => window.tacho.panel().drawn()),
        await on.evaluate(() => window.tacho.panel().drawn()),
      );
      await again.close();
      await on.keyboard.press('Escape');
      await on.keyboard.press('Escape');
      await on.waitForFunction(() => !location.hash.includes('zoom='));

      // What the pointer shows: exact numbers of that frame.
      const at = await on.evaluate(() =>
        window.tacho
          .panel()
          .drawn()
          .find((each) => each.depth === 1),
      );
      await on.mouse.move(area.x + at.x + 8, area.y + 19 + 10);
      const exact = await on.locator('#tip td[title]').first().getAttribute('title');
      assert.equal(Number(exact.replace(/[^0-9]/g, '')), at.host[0] > 0 ? at.host[0] : at.gpu[0]);
      await opened.close();
    }
  });

test('search: the share of matches is that of the outermost frames that match', async () => {
  const expected = await stats(sampled[0]);
  const opened = await open(await serve(sampled[0]), { hash: 'view=flame&flame=host.interpreter' });
  const on = opened.page;
  await all(on);
  await on.keyboard.press('/');
  await on.keyboard.type('^work ');
  let [sum, whole] = [0, 0];
  for (const [name, [host]] of expected) {
    whole += host;
    if (name.split(';').some((each) => each.startsWith('work '))) sum += host;
  }
  assert.ok(sum > 0 && sum < whole);
  await on.waitForFunction(
    (text) => document.querySelector('.search .status').textContent === text,
    `${((100 * sum) / whole).toFixed(1)} % in matches`,
  );
  await opened.close();
});

test('a span: samples taken and work launched in it, as tacho query counts them', async () => {
  for (const [file, what] of [
    [sampled[0], 'host'],
    [h100, 'gpu'],
  ]) {
    const opened = await open(await serve(file), { hash: 'view=flame&flame=interpreter' });
    const on = opened.page;
    await on.waitForFunction(() => (window.tacho.app.current.ready ?? 1) >= 1);
    await all(on);
    const { t0, length } = await on.evaluate(() => ({
      t0: window.tacho.app.current.t0,
      length: window.tacho.app.length,
    }));
    const [from, to] = [Math.floor(length * 0.3), Math.floor(length * 0.6)];
    const [a, b] = [BigInt(t0) + BigInt(from), BigInt(t0) + BigInt(to)];
    await on.evaluate((span) => window.tacho.app.choose(span, true), [from, to]);
    await on.waitForFunction(() => document.querySelector('.flame-note')?.textContent.includes('work launched in the'));
    const nodes = await all(on);
    if (what === 'host') {
      const [[time]] = await query(
        file,
        `SELECT sum(duration) FROM tacho.sample WHERE start >= ${a} AND start < ${b} AND duration > 0`,
      );
      assert.equal(nodes[0].host[0], time);
      assert.ok(time > 0);
    } else {
      // Work by the time of its call; what no call launched, by its own.
      const calls =
        "SELECT correlation, min(api.start) AS start FROM tacho.api JOIN tacho.function ON api.dim = function.id WHERE correlation != 0 AND domain NOT IN ('operator', 'python') GROUP BY correlation";
      let sum = 0;
      for (const table of ['dispatch', 'copy', 'fill']) {
        const [[time]] = await query(
          file,
          `SELECT sum(w.duration) FROM tacho.${table} w LEFT JOIN (${calls}) c ON w.correlation = c.correlation WHERE coalesce(c.start, w.start) >= ${a} AND coalesce(c.start, w.start) < ${b}`,
        );
        sum += time ?? 0;
      }
      assert.equal(nodes[0].gpu[0], sum);
      assert.ok(sum > 0);
    }
    await opened.close();
    // A page without tacho says that it cannot.
    const alone = await open(await write(file), { hash: `view=flame&span=${from}-${to}` });
    await all(alone.page);
    assert.match(
      await alone.page.locator('.flame-note').first().textContent(),
      /stacks of the whole run[^]*need\s+tacho view/,
    );
    await alone.close();
  }
});

test('a kernel that is clicked is the kernel of the other views', async () => {
  const opened = await open(await serve(h100), { hash: 'view=flame&flame=gpu' });
  const on = opened.page;
  await all(on);
  const box = await on.evaluate(
    () =>
      window.tacho
        .panel()
        .drawn()
        .filter((each) => each.part === 'device')
        .sort((x, y) => y.w - x.w)[0],
  );
  const area = await on.locator('#canvas').boundingBox();
  await on.mouse.click(area.x + box.x + box.w / 2, area.y + box.depth * 19 + 10);
  await on.waitForFunction((text) => window.tacho.app.kernel?.text === text, box.label);
  const [[total]] = await query(
    h100,
    `SELECT sum(duration) FROM tacho.dispatch WHERE name = '${box.label.replaceAll("'", "''")}'`,
  );
  const nodes = await all(on);
  assert.equal(
    nodes.filter((node) => node.path.endsWith(`;${box.label}`)).reduce((sum, node) => sum + node.gpu[0], 0),
    total,
  );
  assert.match(await on.locator('#matched').textContent(), /of GPU time in the kernel chosen/);
  await on.keyboard.press('3');
  await on.locator('.kernels .row.on').waitFor();
  assert.ok((await on.locator('.kernels .row.on .name').getAttribute('title')).startsWith(box.label.slice(0, 60)));
  await on.waitForFunction(() => /kernel=\d+/.test(location.hash));
  await opened.close();
});

test('without stacks a sentence says what would record them', async () => {
  for (const address of [await serve(markersOnly), await write(markersOnly)]) {
    const opened = await open(address, { hash: 'view=flame' });
    // Until the answer is there, the same line says that stacks are added up.
    await opened.page.locator('.waiting', { hasText: 'has no call stacks: tacho trace --sampler timer' }).waitFor();
    assert.equal(await opened.page.locator('#canvas').count(), 0);
    await opened.close();
  }
});

test('what changed: rows equal tacho diff', async () => {
  const opened = await open(await serve(h100, mi300x), { hash: 'view=diff' });
  const on = opened.page;
  for (const by of ['kernel', 'operator', 'api', 'copy']) {
    await on.evaluate((what) => window.tacho.app.say('diff', `0.1.table.${what}`), by);
    const expected = (await json('diff', h100, mi300x, '--by', by)).rows;
    assert.ok(expected.length > 0);
    const shown = new Map();
    await on.waitForFunction(
      (count) =>
        window.tacho.panel()?.settled() === true &&
        document.querySelectorAll('.diff .row').length >= Math.min(count, 10),
      expected.length,
    );
    for (let top = 0; ; top += 300) {
      await on.evaluate((y) => (document.querySelector('.diff .scroll').scrollTop = y), top);
      await on.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      for (const cells of await on
        .locator('.diff .row')
        .evaluateAll((rows) =>
          rows.map((row) => [row.style.top, ...[...row.children].map((cell) => cell.title || cell.textContent)]),
        ))
        shown.set(cells[0], cells.slice(1));
      if (
        await on.evaluate(() => {
          const box = document.querySelector('.diff .scroll');
          return box.scrollTop + box.clientHeight >= box.scrollHeight - 1;
        })
      )
        break;
    }
    const number = (text) => (['', '—'].includes(text) ? null : Number(text.replace(/[^0-9.e-]/g, '')));
    const round = (value) => (value === null ? null : Number(Number(value).toPrecision(6)));
    const rows = [...shown.values()].map(([name, , difference, change, share, totalA, totalB, callsA, callsB]) => [
      number(difference),
      /only/.test(change) ? null : round(number(change)),
      round(number(share)),
      number(callsA),
      number(callsB),
      number(totalA),
      number(totalB),
      name.slice(0, 100),
    ]);
    const told = expected.map(([difference, change, share, callsA, callsB, totalA, totalB, ...rest]) => [
      difference,
      round(change),
      round(share),
      callsA,
      callsB,
      totalA,
      totalB,
      rest.at(-1).slice(0, 100),
    ]);
    assert.deepEqual(rows.map(String).sort(), told.map(String).sort());
    const titles = await on
      .locator('.diff .headline b[title]')
      .evaluateAll((all) => all.map((each) => Number(each.title.replace(/[^0-9]/g, ''))));
    assert.deepEqual(
      titles,
      [5, 6].map((column) => expected.reduce((sum, row) => sum + (row[column] ?? 0), 0)),
    );
  }
  await opened.close();
});

test('flame graph of a difference: both runs are as tacho stats says', async () => {
  const opened = await open(await serve(...sampled), { hash: 'view=diff&diff=0.1.flame&flame=host.interpreter.lines' });
  const on = opened.page;
  const nodes = await all(on);
  for (const [r, file] of [
    [0, sampled[1]],
    [1, sampled[0]],
  ]) {
    const totals = new Map();
    for (const [name, [host]] of await stats(file)) {
      const parts = name.split(';');
      for (let i = 1; i <= parts.length; ++i)
        totals.set(parts.slice(0, i).join(';'), (totals.get(parts.slice(0, i).join(';')) ?? 0) + host);
    }
    const shown = new Map();
    for (const node of nodes)
      if (node.path !== '' && node.host[r] > 0) shown.set(node.path, (shown.get(node.path) ?? 0) + node.host[r]);
    assert.deepEqual(sorted(shown), sorted(new Map([...totals].filter(([, value]) => value > 0))));
  }
  // work() has a smaller share in B: blue; other() a larger one: red.
  const colours = await on.evaluate(() => {
    const canvas = document.querySelector('#canvas');
    const context = canvas.getContext('2d');
    const at = (name) => {
      const box = window.tacho
        .panel()
        .drawn()
        .find((each) => each.label.startsWith(name));
      const scale = canvas.width / canvas.clientWidth;
      return [
        ...context.getImageData(Math.round((box.x + box.w - 3) * scale), Math.round((box.depth * 19 + 5) * scale), 1, 1)
          .data,
      ];
    };
    return { work: at('work ('), other: at('other (') };
  });
  assert.ok(colours.work[2] > colours.work[0], `blue: ${colours.work}`);
  assert.ok(colours.other[0] > colours.other[2], `red: ${colours.other}`);
  await opened.close();
});

test('flame graph of a difference: functions that moved are the same by default', async () => {
  // The same program elsewhere, each function on other lines.
  const moved = path.join(folder, 'moved');
  mkdirSync(moved);
  writeFileSync(path.join(moved, 'sorting.py'), `\n\n\n${readFileSync(path.join(folder, 'sorting.py'), 'utf8')}`);
  const other = path.join(folder, 'moved.tacho');
  execFileSync(
    tacho,
    ['sys', 'sample', '-q', '-f', '500', '-o', other, '--', python, path.join(moved, 'sorting.py'), '10', '9000'],
    { stdio: 'ignore' },
  );
  const opened = await open(await serve(sampled[0], other), { hash: 'view=diff&diff=0.1.flame&flame=host' });
  const on = opened.page;
  const pressed = () => on.locator('.flame-bar [aria-label="Frames by"] [aria-pressed=true]').textContent();
  const of = (nodes, name) => nodes.filter((each) => new RegExp(`(^|;)${name} \\([^;]*$`).test(each.path));
  let nodes = await all(on);
  assert.equal(await pressed(), 'Function');
  for (const name of ['work', 'other']) {
    const found = of(nodes, name);
    assert.equal(found.length, 1, name);
    assert.equal(found[0].path.split(';').at(-1), `${name} (sorting.py)`);
    for (const [r, file] of [
      [0, other],
      [1, sampled[0]],
    ]) {
      const text = await run('stats', file, '--by', 'function', '--output-format', 'json');
      const { columns, rows } = JSON.parse(text);
      const row = rows.find(
        (each) => each.includes(name) || each.some((value) => String(value).startsWith(`${name} (`)),
      );
      assert.ok(row?.includes(found[0].host[r]), `${name} ${found[0].host[r]} ${columns} ${row}`);
    }
  }
  // By line nothing of it is the same: each frame is in one run alone.
  await on.getByRole('button', { name: 'Function and line' }).click();
  await on.waitForFunction(() => location.hash.includes('lines'));
  nodes = await all(on);
  assert.equal(await pressed(), 'Function and line');
  assert.ok(of(nodes, 'work').length >= 2);
  for (const each of of(nodes, 'work')) assert.ok(each.host.includes(0), each.path);
  await on.getByRole('button', { name: 'Function', exact: true }).click();
  await on.waitForFunction(() => !location.hash.includes('lines'));
  assert.equal(of(await all(on), 'work').length, 1);
  await opened.close();
});

test('no view is wider than the window, nor does anything lie over something else', async () => {
  const address = await serve(h100, mi300x);
  for (const width of [1600, 900])
    for (const hash of ['view=flame', 'view=diff', 'view=diff&diff=0.1.flame', 'view=diff&diff=0.1.timelines']) {
      const opened = await open(address, { hash, viewport: { width, height: 900 } });
      const on = opened.page;
      await on.waitForFunction(() => window.tacho?.panel?.()?.settled?.() === true);
      if (hash.includes('timelines')) {
        await on.evaluate(() => window.tacho.panel().pair().a.choose([2e7, 2.5e7], true));
        await on.waitForFunction(() => document.querySelectorAll('.half .below table').length >= 2);
        const bottoms = await on
          .locator('.half')
          .evaluateAll((halves) =>
            halves.map((half) => [
              half.getBoundingClientRect().bottom,
              half.querySelector('.below').getBoundingClientRect().bottom,
            ]),
          );
        for (const [half, below] of bottoms) assert.ok(below <= half + 1, `${width} ${below} ${half}`);
      }
      const wide = await on.evaluate(() =>
        [...document.querySelectorAll('.frame, main, main > *, .bar-top, .flame-bar, .flame-box')]
          .filter(
            (each) =>
              each.scrollWidth > each.clientWidth + 1 || each.getBoundingClientRect().right > window.innerWidth + 1,
          )
          .map((each) => each.className),
      );
      assert.deepEqual(wide, [], `${width} ${hash}`);
      await opened.close();
    }
});

test('timelines below each other meet at the first marker and move together', async () => {
  const opened = await open(await serve(h100, mi300x), { hash: 'view=diff&diff=0.1.timelines' });
  const on = opened.page;
  await on.waitForFunction(() => window.tacho.panel()?.settled() === true);
  const said = await on.locator('.aligned').textContent();
  const label = /“(.*?)”/.exec(said)[1];
  const moments = [];
  for (const [i, file] of [h100, mi300x].entries()) {
    const [[first]] = await query(file, `SELECT min(start) FROM tacho.marker WHERE name = '${label}'`);
    moments.push(first - Number(await on.evaluate((n) => window.tacho.app.document.runs[n].t0, i)));
  }
  assert.match(label, /step/i);
  const state = () =>
    on.evaluate(() => {
      const { a, b, shift } = window.tacho.panel().pair();
      return { shift, a: [a.from, a.to], b: [b.from, b.to], span: [a.span, b.span] };
    });
  const whole = await state();
  assert.ok(Math.abs(whole.shift - (moments[1] - moments[0])) < 1);
  // Both runs are in view as a whole.
  assert.ok(whole.a[0] <= 0 && whole.b[0] <= 0);
  // Zooming the second moves the first.
  const halves = await on.locator('.half .over').all();
  const area = await halves[1].boundingBox();
  await on.mouse.move(area.x + area.width / 3, area.y + 30);
  await on.keyboard.down('Control');
  await on.mouse.wheel(0, -600);
  await on.keyboard.up('Control');
  await on.waitForFunction((before) => window.tacho.panel().pair().a.to < before, whole.a[1]);
  const zoomed = await state();
  const slack = (zoomed.a[1] - zoomed.a[0]) * 1e-5 + 1;
  for (const k of [0, 1]) assert.ok(Math.abs(zoomed.b[k] - zoomed.a[k] - zoomed.shift) < slack, JSON.stringify(zoomed));
  // What is selected in one is selected in the other, and its tables are those of each run.
  await on.evaluate(() => {
    const { a } = window.tacho.panel().pair();
    a.choose([Math.round(a.length * 0.4), Math.round(a.length * 0.5)], true);
  });
  await on.waitForFunction(() => {
    const { b } = window.tacho.panel().pair();
    return b.span !== null && b.tables !== null;
  });
  const { span, shift } = await state();
  for (const k of [0, 1]) assert.ok(Math.abs(span[1][k] - span[0][k] - shift) <= 1);
  // The address brings both back.
  await on.waitForFunction(() => location.hash.includes('pair='));
  const again = await open(on.url().split('#')[0], { hash: new URL(on.url()).hash.slice(1) });
  await again.page.waitForFunction(() => window.tacho.panel()?.settled() === true);
  const back = await again.page.evaluate(() => {
    const { a, b } = window.tacho.panel().pair();
    return [a.from, a.to, b.from, b.to];
  });
  const there = [...zoomed.a, ...zoomed.b];
  back.forEach((value, i) => assert.ok(Math.abs(value - there[i]) < slack + 2, `${back} ${there}`));
  await again.close();
  await opened.close();
});
