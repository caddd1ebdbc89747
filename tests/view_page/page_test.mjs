// The page of tacho view in a browser, on random traces: what is drawn is what a plain renderer of the slices says, what is
// shown in numbers is what the slices add up to, names are text, and the self-contained page asks nobody.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open, selfContained, serve, settled, start, stop } from './harness.mjs';
import { entriesOf, kOdd, makeTrace, overviewOf, random, searchOf, slicesOf } from './trace.mjs';

before(start);
after(stop);

/** Which pixel columns each lane must colour, may colour and must leave, from the slices alone. */
function plain(trace, track, lane, from, perPixel, width) {
  const cover = new Float64Array(width);
  const must = new Uint8Array(width);
  const touched = new Uint8Array(width);
  for (const slice of slicesOf(trace, track)) {
    if (slice.lane !== lane) continue;
    const stop = slice.duration < 0 ? trace.length : slice.start + slice.duration;
    const [x0, x1] = [(slice.start - from) / perPixel, (stop - from) / perPixel];
    let best = -1;
    let most = -1;
    for (let x = Math.max(0, Math.floor(x0)); x < width && x <= Math.floor(x1); ++x) {
      const part = Math.min(x + 1, x1) - Math.max(x, x0);
      if (part < 0 || (part === 0 && x1 > x0)) continue;
      touched[x] = 1;
      cover[x] += part;
      if (part > most + 1e-9) {
        most = part;
        best = x;
      }
    }
    if (best >= 0) must[best] = 1;
  }
  return { cover, must, touched };
}

/** Lines of the canvas in the middle of each lane in view. */
const lines = (page) =>
  page.evaluate(() => {
    const { app, timeline } = window.tacho;
    const controller = timeline();
    const canvas = document.querySelector('.chart canvas');
    const found = [];
    for (const row of app.shown.rows) {
      if (row.what === 'counter') continue;
      for (let lane = 0; lane < row.lanes; ++lane) {
        const y = row.top - controller.scroll + row.first + lane * row.lane + 1;
        if (y < 0 || y >= canvas.clientHeight) continue;
        found.push({ track: row.track.id, lane, y, pixels: [...controller.line(y)] });
      }
    }
    return { found, from: controller.from, to: controller.to, width: canvas.width };
  });

/** The empty lane's pixels: those of a line that no slice can reach (between a row's lanes and its edge). */
async function compare(page, trace, exact) {
  const { found, from, to, width } = await lines(page);
  const perPixel = (to - from) / width;
  const ground = await page.evaluate(() => {
    const theme = window.tacho.app.colours;
    return [theme.lane, theme.group, theme.grid, theme.outside];
  });
  const empty = new Set(ground);
  let columns = 0;
  for (const { track, lane, pixels } of found) {
    // Groups are drawn as densities always.
    const slack = ['host', 'process'].includes(trace.tracks[track].kind) ? 1 : exact;
    // Two columns more on each side: what lies just outside of the view may show within the slack.
    const { cover, must, touched } = Object.fromEntries(
      Object.entries(plain(trace, track, lane, from - 2 * perPixel, perPixel, width + 4)).map(([key, values]) => [
        key,
        { at: (x) => values[x + 2] ?? 0 },
      ]),
    );
    for (let x = 0; x < width; ++x) {
      const drawn = !empty.has(pixels[x]);
      const near = (values, test) => {
        for (let d = -slack; d <= slack; ++d) if (test(values.at(x + d))) return true;
        return false;
      };
      const where = `track ${track} lane ${lane} column ${x} of ${from}..${to}`;
      // A slice's strongest column is coloured, and so is what is covered by a tenth or more.
      if ((must.at(x) === 1 || cover.at(x) > 0.1) && slack === 0) assert.ok(drawn, `${where}: missing`);
      if (must.at(x) === 1 && slack > 0 && x > 0 && x + 1 < width)
        assert.ok(
          [-1, 0, 1].some((d) => !empty.has(pixels[x + d])),
          `${where}: missing`,
        );
      if (drawn) {
        ++columns;
        assert.ok(
          near(touched, (each) => each === 1),
          `${where}: invented`,
        );
      }
      // A gap that is wider than what a bin may blur stays a gap, at every zoom.
      if (slack > 0 && [-1, 0, 1].every((d) => cover.at(x + d) >= 0.999))
        assert.ok(drawn, `${where}: full, but missing`);
    }
  }
  return columns;
}

const views = (trace, seed, count) => {
  const next = random(seed);
  const list = [[0, trace.length]];
  while (list.length < count) {
    const span = trace.length / 10 ** (next() * 4.5);
    const from = next() * (trace.length - span);
    list.push([from, from + Math.max(span, 16)]);
  }
  return list;
};

async function look(page, from, to) {
  await page.evaluate(([a, b]) => window.tacho.timeline().set(a, b), [from, to]);
  await settled(page);
}

for (const [what, most, slack] of [
  ['slices', 4096, 0],
  ['densities', 12, 1],
])
  test(`what is drawn of ${what} is what a plain renderer draws, at many zooms`, async () => {
    let columns = 0;
    for (const seed of [1, 2, 3]) {
      const trace = makeTrace(seed, { slices: 300 });
      const server = await serve(trace, { most });
      const { page, close } = await open(server.address, { hash: 'view=timeline' });
      await settled(page);
      for (const [from, to] of views(trace, seed, 14)) {
        await look(page, from, to);
        columns += await compare(page, trace, slack);
      }
      await close();
      await server.close();
    }
    assert.ok(columns > 20000, `${columns} columns`);
  });

test('what is drawn of the self-contained page is what a plain renderer draws', async () => {
  const trace = makeTrace(7, { slices: 300 });
  const { page, close } = await open(selfContained(trace), { hash: 'view=timeline' });
  await settled(page);
  for (const [from, to] of views(trace, 7, 14)) {
    await look(page, from, to);
    assert.ok((await compare(page, trace, 0)) > 0 || from > 0);
  }
  await close();
});

test('a closed process shows the union of its queues', async () => {
  const trace = makeTrace(11, { slices: 120 });
  for (const address of [(await serve(trace)).address, selfContained(trace)]) {
    const { page, close } = await open(address, { hash: 'view=timeline&tracks=1' });
    await settled(page);
    for (const [from, to] of views(trace, 11, 6)) {
      await look(page, from, to);
      await compare(page, trace, 1);
    }
    await close();
  }
});

test('the tiles made in the page equal those of the server', async () => {
  const trace = makeTrace(13, { slices: 6000, length: 4e7 });
  const server = await serve(trace);
  const { page, close } = await open(selfContained(trace), { hash: 'view=timeline' });
  const made = await open(server.address, { hash: 'view=timeline' });
  let compared = 0;
  for (const [level, index] of [
    [17, 0],
    [14, 0],
    [14, 2],
    [10, 5],
    [8, 100],
    [4, 1000],
  ]) {
    const tiles = (on) =>
      on.evaluate(
        async ([l, i, ids]) => {
          const list = await window.tacho.app.source.tiles(0, l, i, ids, new AbortController().signal);
          return list.map((each) =>
            Object.fromEntries(
              Object.entries(each)
                .filter(([key]) => key !== 'bytes')
                .map(([key, value]) => [key, ArrayBuffer.isView(value) ? [...value].map(String) : value]),
            ),
          );
        },
        [
          level,
          index,
          trace.tracks.filter((track) => !['host', 'process'].includes(track.kind)).map((track) => track.id),
        ],
      );
    const [inPage, served] = [await tiles(page), await tiles(made.page)];
    for (const [a, b] of inPage.map((each, i) => [each, served[i]])) {
      // Where two names cover a bin alike either may stand there.
      const { name: nameA, ...restA } = a;
      const { name: nameB, ...restB } = b;
      assert.deepEqual(restA, restB, `level ${level} index ${index} track ${a.track}`);
      if (a.kind === 'slices') assert.deepEqual(nameA, nameB);
      compared += a.bin?.length ?? a.start?.length ?? 0;
    }
  }
  assert.ok(compared > 1000, `${compared}`);
  await close();
  await made.close();
  await server.close();
});

test('numbers of the overview, of a span and of the kernels are what the slices add up to', async () => {
  const trace = makeTrace(17, { slices: 500 });
  for (const address of [(await serve(trace)).address, selfContained(trace)]) {
    const { page, close } = await open(address, { hash: 'view=overview' });
    const shown = (selector) =>
      page
        .locator(`${selector} tbody tr`)
        .evaluateAll((rows) =>
          rows.map((row) => [
            Number(row.dataset.name),
            ...[...row.cells].slice(2).map((cell) => cell.title || cell.textContent),
          ]),
        );
    const ns = (x) => `${x.toLocaleString('en-US', { maximumFractionDigits: 3 })} ns`;
    const expected = (entries) =>
      entries.map((each) => [
        each.name,
        ns(each.total),
        each.count.toLocaleString('en-US'),
        ns(each.mean),
        ns(each.min),
        ns(each.max),
      ]);
    const overview = overviewOf(trace);
    assert.deepEqual(await shown('table[data-kind="kernel"]'), expected(overview.kernels));
    assert.deepEqual(await shown('table[data-kind="api"]'), expected(overview.calls_top));
    const share = (x) => `${((100 * x) / trace.length).toFixed(1)} %`;
    const headline = await page.locator('.headline').textContent();
    for (const part of [overview.totals.compute, overview.totals.exposed_copy, overview.totals.gpu_idle])
      assert.ok(headline.includes(share(part)), `${headline} has no ${share(part)}`);

    // Exactly the span that was selected, parts of slices at its ends included.
    await page.evaluate(() => (window.tacho.app.view = 'timeline'));
    await settled(page);
    for (const [from, to] of [
      [100000, 230001],
      [500, 900],
      [0, trace.length],
    ]) {
      await page.evaluate((span) => window.tacho.app.choose(span, true), [from, to]);
      await page.waitForFunction(() => window.tacho.app.tables !== null && !window.tacho.app.tablesBusy);
      const entries = entriesOf(trace, ['dispatch'], from, to);
      if (entries.length > 0) {
        const tab = page.locator('.segments button', { hasText: 'Kernels' });
        await tab.click();
        const rows = await shown('.below table[data-kind="kernel"]');
        assert.deepEqual(rows.map((row) => [...row]).sort(), expected(entries).sort(), `${from} to ${to}`);
      }
    }
    await page.evaluate(() => window.tacho.app.choose([100000, 400000], true));
    await page.evaluate(() => (window.tacho.app.view = 'kernels'));
    const entries = entriesOf(trace, ['dispatch'], 100000, 400000);
    await page.waitForFunction((count) => document.querySelectorAll('.kernels .row').length === count, entries.length);
    assert.equal(await page.locator('.kernels .row').first().getAttribute('data-name'), String(entries[0].name));
    await page.locator('.kernels .head button', { hasText: 'Count' }).click();
    const counts = await page
      .locator('.kernels .row')
      .evaluateAll((rows) => rows.map((row) => Number(row.children[3].textContent.replaceAll(',', ''))));
    assert.deepEqual(
      counts,
      entries.map((each) => each.count).sort((a, b) => b - a),
    );
    await close();
  }
});

test('names with markup, bidirectional text, emoji and a megabyte are text', async () => {
  const trace = makeTrace(19, { slices: 200, megabyte: true });
  for (const address of [(await serve(trace)).address, selfContained(trace)]) {
    const { page, close } = await open(address, { hash: 'view=overview' });
    for (const view of ['overview', 'timeline', 'kernels']) {
      await page.evaluate((name) => (window.tacho.app.view = name), view);
      await page.waitForTimeout(150);
      for (const name of [1, 2, 3, 5]) {
        await page.evaluate(
          ([each, text]) => window.tacho.app.chooseKernel({ name: each, text }),
          [name, trace.names[name]],
        );
        const slice = trace.slices.find((each) => each.name === name);
        await page.evaluate(
          (row) => window.tacho.app.select(row),
          String((BigInt(slice.table) << 48n) | BigInt(slice.row)),
        );
        await page.waitForFunction(() => window.tacho.app.slice !== null);
        await page.waitForTimeout(30);
      }
    }
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.evaluate(() => document.querySelectorAll('img, #app script').length), 0);
    const texts = await page.locator('.kernels .row .name bdi').allTextContents();
    assert.ok(texts.includes(kOdd[0]), texts.join('\n'));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 1600, `${wide} pixels wide`);
    await close();
  }
});

test('search: as one types, n of m, next and previous, what cannot be found, what is no expression', async () => {
  const trace = makeTrace(23, { slices: 900, odd: false });
  const server = await serve(trace);
  const { page, close } = await open(server.address, { hash: 'view=timeline', allow: ['400'] });
  await settled(page);
  const box = page.locator('input[aria-label="search"]');
  const status = page.locator('.search .status');
  await page.keyboard.press('/');
  await page.keyboard.type('kernel_[12]$');
  const found = searchOf(trace, 'kernel_[12]$', false, 1e9, null);
  await page.waitForFunction(
    (text) => document.querySelector('.search .status').textContent === text,
    found.hits.length.toLocaleString('en-US'),
  );
  assert.deepEqual(
    await page.locator('.drop button bdi').allTextContents(),
    found.names.map((each) => each.text),
  );
  await page.keyboard.press('Enter');
  await settled(page);
  await page.waitForFunction(() => window.tacho.app.slice !== null);
  assert.equal(await status.textContent(), `1 of ${found.hits.length}`);
  assert.equal(await page.evaluate(() => window.tacho.app.selected), found.hits[0].row);
  await page.keyboard.press('Enter');
  assert.equal(await status.textContent(), `2 of ${found.hits.length}`);
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.press('Shift+Enter');
  assert.match(await status.textContent(), new RegExp(`^${found.hits.length} of`));
  // The hit is in view, wide enough to be seen.
  await settled(page);
  const [from, to] = await page.evaluate(() => [window.tacho.app.from, window.tacho.app.to]);
  const last = found.hits.at(-1);
  assert.ok(from <= last.start && last.start + last.duration <= to, `${last.start} in ${from}..${to}`);
  await box.fill('no such name');
  await page.waitForFunction(() => document.querySelector('.search .status').textContent === 'nothing');
  await box.fill('(');
  await page.waitForFunction(() => document.querySelector('.search .status').textContent === 'not an expression');
  await close();
  await server.close();
});

test('the address holds the view: a link shows the same', async () => {
  const trace = makeTrace(29, { slices: 300 });
  const server = await serve(trace);
  const first = await open(server.address, { hash: 'view=timeline' });
  await settled(first.page);
  const row = String((0n << 48n) | 5n);
  await first.page.evaluate((id) => {
    const { app } = window.tacho;
    window.tacho.timeline().set(123456.5, 234567.25);
    app.choose([130000, 140000], true);
    app.select(id);
    app.toggle(2);
    app.search('kernel_3', false);
  }, row);
  await settled(first.page);
  await first.page.waitForTimeout(400);
  const link = await first.page.evaluate(() => location.hash.slice(1));
  const second = await open(server.address, { hash: link });
  await settled(second.page);
  await second.page.waitForFunction(
    () => window.tacho.app.tables !== null && window.tacho.app.slice !== null && window.tacho.app.found !== null,
  );
  await settled(second.page);
  const state = (page) =>
    page.evaluate(() => {
      const { app } = window.tacho;
      return [app.view, app.from, app.to, app.span, app.selected, [...app.closed], app.query, app.hash()];
    });
  assert.deepEqual(await state(second.page), await state(first.page));
  assert.deepEqual((await lines(second.page)).found, (await lines(first.page)).found);
  await first.close();
  await second.close();
  await server.close();
});

test('mouse and keys: zoom at the mouse, pan, select, span, help', async () => {
  const trace = makeTrace(31, { slices: 300 });
  const server = await serve(trace);
  const { page, close } = await open(server.address, { hash: 'view=timeline' });
  await settled(page);
  const view = () => page.evaluate(() => [window.tacho.app.from, window.tacho.app.to]);
  const box = await page.locator('canvas[aria-label="timeline"]').boundingBox();
  const [x, y] = [box.x + box.width / 3, box.y + 60];
  await page.mouse.move(x, y);
  const at = ([from, to]) => from + (to - from) / 3;
  const before = await view();
  await page.keyboard.down('w');
  await page.waitForTimeout(300);
  await page.keyboard.up('w');
  const zoomed = await view();
  assert.ok(zoomed[1] - zoomed[0] < 0.8 * (before[1] - before[0]));
  assert.ok(Math.abs(at(zoomed) - at(before)) < 1e-3 * trace.length, 'the moment at the mouse stays');
  await page.keyboard.down('d');
  await page.waitForTimeout(200);
  await page.keyboard.up('d');
  const moved = await view();
  assert.ok(moved[0] > zoomed[0] && Math.abs(moved[1] - moved[0] - (zoomed[1] - zoomed[0])) < 1);
  await page.mouse.down();
  await page.mouse.move(x + 200, y, { steps: 4 });
  await page.mouse.up();
  const dragged = await view();
  assert.ok(
    Math.abs(dragged[0] - (moved[0] - (200 * (moved[1] - moved[0])) / box.width)) < 2,
    'dragging moves by what the mouse moves',
  );
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -200);
  await page.keyboard.up('Control');
  const wheeled = await view();
  assert.ok(wheeled[1] - wheeled[0] < dragged[1] - dragged[0]);
  await page.keyboard.press('0');
  await settled(page);
  // A span, with Shift: its tables appear and hold what lies in it.
  await page.keyboard.down('Shift');
  await page.mouse.move(box.x + 100, y);
  await page.mouse.down();
  await page.mouse.move(box.x + 400, y, { steps: 5 });
  await page.mouse.up();
  await page.keyboard.up('Shift');
  const span = await page.evaluate(() => window.tacho.app.span);
  const [from, to] = await view();
  assert.ok(Math.abs(span[0] - (from + (100 / box.width) * (to - from))) < 2 * ((to - from) / box.width));
  await page.locator('.below .entries').first().waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => window.tacho.app.span), null);
  // A click selects what lies under it, with what launched it.
  const slice = trace.slices.filter((each) => each.table === 0).sort((a, b) => b.duration - a.duration)[0];
  await look(page, slice.start - slice.duration, slice.start + 2 * slice.duration);
  const row = await page.evaluate((track) => {
    const found = window.tacho.app.shown.rows.find((each) => each.track.id === track);
    return found.top + found.first + 6;
  }, slice.track);
  await page.mouse.move(box.x + box.width / 2, box.y + row);
  await page.locator('.tip').waitFor();
  assert.ok((await page.locator('.tip').textContent()).includes('duration'));
  await page.mouse.click(box.x + box.width / 2, box.y + row);
  await page.waitForFunction(() => window.tacho.app.slice !== null);
  assert.equal(
    await page.evaluate(() => window.tacho.app.selected),
    String((BigInt(slice.table) << 48n) | BigInt(slice.row)),
  );
  await page.locator('.below .links button').first().click();
  await page.waitForFunction(() => window.tacho.app.slice?.table === 'api');
  await page.keyboard.press('?');
  await page.locator('.help').waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.help').count(), 0);
  // The evidence of a finding.
  await page.evaluate(() => (window.tacho.app.view = 'overview'));
  await page.getByText('show it').click();
  await settled(page);
  const shown = await view();
  assert.ok(
    shown[0] <= 0.4 * trace.length && shown[1] >= 0.5 * trace.length && shown[1] - shown[0] < 0.2 * trace.length,
  );
  await close();
  await server.close();
});

test('slow tiles: coarser ones stand in, requests that left the view are given up', async () => {
  const trace = makeTrace(37, { slices: 3000, length: 5e6 });
  const server = await serve(trace, { most: 50, delay: 60 });
  const { page, close } = await open(server.address, { hash: 'view=timeline' });
  await settled(page);
  const blank = await page.evaluate(async () => {
    const timeline = window.tacho.timeline();
    const theme = window.tacho.app.colours;
    const row = window.tacho.app.shown.rows.find((each) => each.track.kind === 'queue');
    let empty = 0;
    for (let i = 0; i < 40; ++i) {
      timeline.zoom(0.93, 300);
      await new Promise((done) => requestAnimationFrame(done));
      const line = timeline.line(row.top + row.first + 4);
      if (line.every((each) => each === theme.lane || each === theme.grid || each === theme.outside)) ++empty;
    }
    return empty;
  });
  await settled(page);
  const counts = await page.evaluate(() => ({ ...window.tacho.app.tiles.counts }));
  assert.equal(blank, 0, 'the queue was drawn in every frame');
  assert.ok(counts.aborted > 0, JSON.stringify(counts));
  assert.ok((await compare(page, trace, 1)) >= 0);
  await close();
  await server.close();
});

test('a server that went away is said in one sentence', async () => {
  const trace = makeTrace(41, { slices: 3000, length: 4e7 });
  const server = await serve(trace, { most: 50 });
  const { page } = await open(server.address, { hash: 'view=timeline', allow: ['ERR_'] });
  await settled(page);
  await server.close();
  await page.evaluate(() => window.tacho.timeline().set(1e6, 1.2e6));
  await page.locator('.banner.float').waitFor();
  assert.equal(
    await page.locator('.banner.float').textContent(),
    'tacho does not answer any more; run tacho view again and open the address that it prints.',
  );
  await page.context().close();
});

test('no view is wider than the window, at 1600 and at 1024 pixels', async () => {
  const trace = makeTrace(43, { slices: 300 });
  const server = await serve(trace);
  for (const width of [1600, 1024]) {
    const { page, close } = await open(server.address, { hash: 'kernel=6', viewport: { width, height: 700 } });
    for (const view of ['overview', 'timeline', 'kernels', 'sql']) {
      await page.evaluate((name) => (window.tacho.app.view = name), view);
      await page.waitForTimeout(120);
      const wide = await page.evaluate(() =>
        Math.max(
          ...[...document.querySelectorAll('header, main, footer, main > *')].map(
            (each) => each.getBoundingClientRect().right,
          ),
        ),
      );
      assert.ok(wide <= width + 0.5, `${view}: ${wide} of ${width}`);
    }
    await close();
  }
  await server.close();
});

test('kernels are shown by what tells them apart, and a filter that is no expression is looked for as it stands', async () => {
  const trace = makeTrace(23, { slices: 300, odd: false });
  const names = [
    'void at::native::(anonymous namespace)::elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int, float*)',
    'void first::scale<float>(float*)',
    'void second::scale<float>(float*)',
    'aten::plain',
  ];
  names.forEach((name, i) => (trace.names[1 + i] = name));
  const { page, close } = await open(selfContained(trace), { hash: 'view=kernels' });
  await page.locator('.kernels .row').first().waitFor();
  const shown = Object.fromEntries(
    await page
      .locator('.kernels .row .name')
      .evaluateAll((cells) => cells.map((cell) => [cell.title, cell.querySelector('bdi').textContent])),
  );
  assert.equal(shown[names[0]], 'elementwise_kernel<4, CUDAFunctor_add<float> >');
  assert.equal(shown[names[1]], names[1], 'without its namespace it is the same as another');
  assert.equal(shown[names[2]], names[2]);
  assert.equal(shown[names[3]], 'plain');
  await page.getByLabel('filter kernels').fill('scale<float>(');
  await page.locator('.kernels .note', { hasText: 'no regular expression, looked for as it stands' }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll('.kernels .row').length === 2);
  await page.getByLabel('filter kernels').fill('scale.*\\(');
  await page.waitForFunction(
    () =>
      document.querySelectorAll('.kernels .row').length === 2 &&
      !/no regular/.test(document.querySelector('.kernels').textContent),
  );
  await close();
});
