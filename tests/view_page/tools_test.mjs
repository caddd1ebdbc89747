// Working in the timeline: marks with notes and the time between them, the order of tracks, the stacks of samples and the rates of
// counters over time, and one colour for each kind of names in all views.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { folder, open, selfContained, serve as serveTrace, settled, start, stop } from './harness.mjs';
import { data, query, run, serve, write } from './program.mjs';
import { makeTrace } from './trace.mjs';

const ranks4 = path.join(data, 'ranks4');
const sampled = path.join(folder, 'sampled.tacho');

before(async () => {
  await start();
  const script = path.join(folder, 'spin.py');
  writeFileSync(
    script,
    'import time\ndef inner(n):\n    total = 0\n    for i in range(n): total += i * i\n    return total\ndef work(end):\n    while time.process_time() < end: inner(20000)\ndef main():\n    work(time.process_time() + 0.8)\n    time.sleep(0.4)\n    work(time.process_time() + 0.4)\nmain()\n',
  );
  await run('sys', 'sample', '-q', '-o', sampled, '--', '/usr/bin/python3', script);
});
after(stop);

/** The address is written some times a second; this is when it has been. */
const written = (page) => page.waitForFunction(() => location.hash === `#${window.tacho.app.hash()}`);
const marks = (page) =>
  page.evaluate(() =>
    (window.tacho.app.words.marks ?? '')
      .split(',')
      .filter(Boolean)
      .map((each) => Number(each.split('~')[0])),
  );

test('marks snap to edges, measure, take notes, are dragged and deleted, and a link shows them', async () => {
  const trace = makeTrace(31, { slices: 300, odd: false });
  const server = await serveTrace(trace);
  for (const address of [server.address, selfContained(trace)]) {
    const { page, close } = await open(address, { hash: 'view=timeline' });
    await settled(page);
    const slice = trace.slices.filter((each) => each.table === 0).sort((a, b) => b.duration - a.duration)[0];
    await page.evaluate(
      ([from, to]) => window.tacho.timeline().set(from, to),
      [slice.start - slice.duration, slice.start + 2 * slice.duration],
    );
    await settled(page);
    const place = await page.evaluate(
      ([track, lane, from, to]) => {
        const timeline = window.tacho.timeline();
        return { y: timeline.yOf(track, lane).y, a: timeline.xOf(from), b: timeline.xOf(to) };
      },
      [slice.track, 0, slice.start, slice.start + slice.duration],
    );
    const box = await page.locator('canvas[aria-label="timeline"]').boundingBox();
    const row = await page.evaluate(
      ([x, top, height]) => {
        // The lane that the slice lies in.
        const timeline = window.tacho.timeline();
        for (let y = top; y < top + height; y += 4) {
          const found = timeline.find(x, y);
          if (found?.what === 'slice' && Math.abs(timeline.xOf(found.start) - (x - 3)) < 1) return y;
        }
        return -1;
      },
      [place.a + 3, place.y - 8, 400],
    );
    assert.ok(row >= 0);
    await page.mouse.move(box.x + place.a + 3, box.y + row);
    await page.waitForFunction(() => window.tacho.timeline().under?.what === 'slice');
    await page.keyboard.press('k');
    await page.mouse.move(box.x + place.b - 3, box.y + row);
    await page.keyboard.press('k');
    await page.keyboard.press('k'); // the same moment once
    assert.deepEqual(await marks(page), [slice.start, slice.start + slice.duration]);
    assert.match(
      await page.locator('.marks .apart').getAttribute('title'),
      new RegExp(`^${slice.duration.toLocaleString('en-US')} ns`),
    );
    // The note, letters that are keys of the page as well.
    await page.getByLabel('note of mark 1').fill('was das, "k"?');
    await written(page);
    const hash = await page.evaluate(() => location.hash.slice(1));
    const second = await open(address, { hash });
    await settled(second.page);
    assert.deepEqual(await marks(second.page), await marks(page));
    assert.equal(await second.page.getByLabel('note of mark 1').inputValue(), 'was das, "k"?');
    await second.close();
    // Dragged in the ruler, not past its neighbour.
    const ruler = await page.locator('canvas[aria-label="ruler"]').boundingBox();
    await page.mouse.move(ruler.x + place.a + 4, ruler.y + 18);
    await page.mouse.down();
    await page.mouse.move(ruler.x + place.a + 44, ruler.y + 18, { steps: 4 });
    await page.mouse.up();
    const [moved, other] = await marks(page);
    assert.ok(moved > slice.start && other === slice.start + slice.duration);
    assert.equal(await page.evaluate(() => window.tacho.app.span), null, 'no span was selected');
    // What lies between them becomes the span; a mark goes when it is removed.
    await page.locator('.marks .apart').click();
    assert.deepEqual(await page.evaluate(() => window.tacho.app.span), [moved, other]);
    await page.getByLabel('remove mark 1').click();
    assert.deepEqual(await marks(page), [other]);
    await page.getByLabel('mark a moment').click();
    assert.equal((await marks(page)).length, 2);
    await close();
  }
  await server.close();
});

test('tracks change places by keys and by the mouse, and a link shows the same order', async () => {
  const trace = makeTrace(31, { slices: 300, odd: false });
  const server = await serveTrace(trace);
  for (const address of [server.address, selfContained(trace)]) {
    const { page, close } = await open(address, { hash: 'view=timeline' });
    await settled(page);
    const shown = () =>
      page.evaluate(() => window.tacho.app.shown.rows.map((row) => [row.track.id, row.track.parent, row.track.name]));
    const first = await shown();
    const siblings = first.filter(([, parent]) => first.filter((each) => each[1] === parent).length >= 3);
    const [a, b, c] = siblings.filter(([, parent]) => parent === siblings[0][1]).map(([id]) => id);
    const order = async () => (await shown()).map(([id]) => id).filter((id) => [a, b, c].includes(id));
    assert.deepEqual(await order(), [a, b, c]);
    const name = (id) => first.find((each) => each[0] === id)[2];
    const grip = (id) =>
      page.locator(`.names .row[data-track="${id}"]`).getByLabel(`move ${name(id)}`, { exact: true });
    // By keys; the view itself stays.
    const scroll = await page.evaluate(() => window.tacho.app.scroll);
    await grip(a).focus();
    await page.keyboard.press('ArrowDown');
    assert.deepEqual(await order(), [b, a, c]);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown'); // the last stays the last of these or goes on below others
    await page.keyboard.press('ArrowUp');
    assert.equal(await page.evaluate(() => window.tacho.app.scroll), scroll);
    await page.evaluate(() => (window.tacho.app.choice.order = []));
    // By the mouse: the third onto the first.
    const rowA = await page.locator(`.names .row[data-track="${a}"]`).boundingBox();
    await page.locator(`.names .row[data-track="${c}"]`).hover();
    const at = await grip(c).boundingBox();
    await page.mouse.move(at.x + 5, at.y + 5);
    await page.mouse.down();
    await page.mouse.move(rowA.x + 60, rowA.y + 3, { steps: 12 });
    await page.mouse.up();
    assert.deepEqual(await order(), [c, a, b]);
    await settled(page);
    await written(page);
    const hash = await page.evaluate(() => location.hash.slice(1));
    assert.ok(hash.includes(`order=${c}`), hash);
    const second = await open(address, { hash });
    await settled(second.page);
    assert.deepEqual(
      await second.page.evaluate(() => window.tacho.app.shown.rows.map((row) => row.track.id)),
      (await shown()).map(([id]) => id),
    );
    await second.page.getByRole('button', { name: 'moved' }).click();
    assert.deepEqual(
      await second.page.evaluate(() => window.tacho.app.shown.rows.map((row) => row.track.id)),
      first.map(([id]) => id),
    );
    await second.close();
    await close();
  }
  await server.close();
});

test('the stacks of a thread stand over time, merged, and the thread that sleeps has none', async () => {
  const samples = await query(
    sampled,
    'SELECT start, duration, name FROM tacho.sample WHERE track = (SELECT track FROM tacho.sample GROUP BY track ORDER BY count(*) DESC LIMIT 1) ORDER BY start',
  );
  assert.ok(samples.length > 40, `${samples.length} samples`);
  for (const address of [await serve(sampled), await write(sampled)]) {
    const { page, close } = await open(address, { hash: 'view=timeline' });
    await settled(page);
    const { t0, slices, searched } = await page.evaluate(async () => {
      const { app } = window.tacho;
      const chart = app.current.tracks
        .filter((each) => each.kind === 'stack')
        .reduce((best, each) => (each.events > (best?.events ?? 0) ? each : best), null);
      let level = 0;
      while (512 * 2 ** level < app.length) ++level;
      const read = async (at, index) => {
        const [tile] = await app.source.tiles(app.run, at, index, [chart.id], new AbortController().signal);
        if (tile.kind === 'density')
          return [...(await read(at - 1, 2 * index)), ...(await read(at - 1, 2 * index + 1))];
        return tile.kind === 'slices'
          ? Array.from(tile.start, (start, i) => [start, tile.duration[i], tile.lane[i], tile.name[i]])
          : [];
      };
      const all = await read(level, 0);
      const unique = [...new Map(all.map((each) => [each.join(), each])).values()];
      const { names } = await app.source.names(
        app.run,
        unique.map((each) => each[3]),
      );
      const found = await app.source.search(app.run, '^inner$', true, null);
      return {
        t0: app.current.t0,
        slices: unique.map((each, i) => [...each.slice(0, 3), names[i]]),
        searched: found.names[0]?.count ?? 0,
      };
    });
    const covering = (at) =>
      slices.filter(([from, duration]) => at >= from && at < from + duration).sort((x, y) => x[2] - y[2]);
    let same = 0;
    for (const [start, , name] of samples) {
      const stack = covering(Number(BigInt(start) - BigInt(t0)));
      assert.ok(stack.length > 0, `nothing at ${start}`);
      stack.forEach((each, depth) => assert.equal(each[2], depth, 'each depth once'));
      if ([name, 'inner', 'work', 'main', '<module>'].includes(stack.at(-1)[3])) ++same;
    }
    // The innermost frame is the sample's, but for the interpreter's own.
    assert.ok(same > samples.length * 0.9, `${same} of ${samples.length}`);
    const main = slices.filter((each) => each[3] === 'main');
    assert.ok(main.length >= 2 && main.length < samples.length / 3, `${main.length} stretches of main`);
    // Where the thread sleeps there is nothing: in the middle of the longest time without a sample.
    const at = samples.map(([start]) => Number(BigInt(start) - BigInt(t0)));
    const gaps = at.slice(1).map((each, i) => [each - at[i], (each + at[i]) / 2]);
    const [longest, middle] = gaps.sort((x, y) => y[0] - x[0])[0];
    assert.ok(longest > 0.3e9, `${longest}`);
    assert.deepEqual(covering(middle), []);
    // A search counts samples, not what is drawn of them.
    assert.equal(searched, samples.filter((each) => each[2] === 'inner').length);
    await close();
  }
});

test('sums since the beginning of a process are shown as rates, with units', async () => {
  const rows = await query(
    sampled,
    'SELECT c.name, c.unit, r.track, r.start, r.value FROM tacho.reading r JOIN tacho.track t ON r.track = t.id JOIN tacho.counter c ON t.counter = c.id ORDER BY r.track, r.start',
  );
  const units = { s: '%', B: 'B/s', '': '/s' };
  const sums = ['CPU User Time', 'CPU Kernel Time', 'CPU Page Faults', 'CPU Context Switches', 'IO Read'];
  for (const address of [await serve(sampled), await write(sampled)]) {
    const { page, close } = await open(address, { hash: 'view=timeline' });
    await settled(page);
    const tracks = await page.evaluate(() => window.tacho.app.current.tracks.filter((each) => each.kind === 'counter'));
    let compared = 0;
    for (const name of sums) {
      const of = rows.filter((row) => row[0] === name);
      if (of.length < 3) continue;
      const greatest = [...new Set(of.map((row) => row[2]))].map((track) => {
        const own = of.filter((row) => row[2] === track);
        return Math.max(
          ...own
            .slice(1)
            .map((row, i) => ((row[4] - own[i][4]) / (row[3] - own[i][3])) * 1e9 * (row[1] === 's' ? 100 : 1)),
        );
      });
      const shown = tracks.filter((each) => each.name.endsWith(name) && each.events > 0);
      assert.ok(shown.length > 0, name);
      for (const each of shown) {
        assert.equal(each.rate, true);
        assert.equal(each.unit, units[of[0][1]], name);
        assert.ok(
          greatest.some((value) => Math.abs(value - each.max) <= 1e-6 * Math.max(1, value)),
          `${name}: ${each.max} is none of ${greatest}`,
        );
        ++compared;
      }
    }
    assert.ok(compared >= 3, `${compared} compared`);
    const memory = tracks.find((each) => each.name.endsWith('CPU Memory Usage'));
    assert.ok(memory !== undefined && memory.rate === undefined && memory.unit === 'B');
    await close();
  }
});

test('each kind of names has one colour in all views, and a legend says which', async () => {
  const bands = {
    kernel: [134, 179],
    collective: [283, 308],
    copy: [50, 71],
    api: [192, 219],
    operator: [88, 113],
    host: [240, 269],
  };
  const { page, close } = await open(await serve(ranks4), { hash: 'view=timeline' });
  await page.waitForFunction(() => (window.tacho.app.current.ready ?? 1) >= 1);
  await settled(page);
  const hues = await page.evaluate(async () => {
    const { app } = window.tacho;
    const spans = await app.source.span(app.run, 0, app.length);
    const of = async (entries) => {
      const { names, colors } = await app.source.names(
        app.run,
        entries.map((each) => each.name),
      );
      return names.map((name, i) => [name, colors[i] % 360]);
    };
    return { kernels: await of(spans.kernels), calls: await of(spans.calls), copies: await of(spans.copies) };
  });
  const within = ([from, to], hue) => hue >= from && hue < to;
  assert.ok(hues.kernels.length > 5 && hues.calls.length > 3);
  for (const [name, hue] of hues.kernels)
    assert.ok(within(/nccl/i.test(name) ? bands.collective : bands.kernel, hue), `${name} ${hue}`);
  for (const [name, hue] of hues.calls) assert.ok(within(bands.api, hue), `${name} ${hue}`);
  for (const [name, hue] of hues.copies) assert.ok(within(bands.copy, hue), `${name} ${hue}`);
  const legend = await page.locator('.timeline .kinds span').allInnerTexts();
  for (const title of ['kernels', 'collectives, messages', 'API calls', 'operators'])
    assert.ok(legend.includes(title), legend.join());
  // The same colours in the legend of the overview.
  const hueOf = (text) => {
    const [r, g, b] = text.match(/\d+(\.\d+)?/g).map((each) => Number(each) / 255);
    const linear = (x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    const [x, y, z] = [linear(r), linear(g), linear(b)];
    const l = Math.cbrt(0.4122214708 * x + 0.5363325363 * y + 0.0514459929 * z);
    const m = Math.cbrt(0.2119034982 * x + 0.6806995451 * y + 0.1073969566 * z);
    const s = Math.cbrt(0.0883024619 * x + 0.2817188376 * y + 0.6299787005 * z);
    const [p, q] = [
      1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
      0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
    ];
    return ((Math.atan2(q, p) * 180) / Math.PI + 360) % 360;
  };
  const background = (locator) => locator.evaluate((each) => getComputedStyle(each).backgroundColor);
  const inTimeline = {
    kernels: await background(page.locator('.timeline .kinds span', { hasText: 'kernels' }).locator('i')),
    collectives: await background(page.locator('.timeline .kinds span', { hasText: 'collectives' }).locator('i')),
  };
  await page.evaluate(() => (window.tacho.app.view = 'overview'));
  for (const [name, colour] of Object.entries(inTimeline)) {
    const there = await background(page.locator('.overview .legend span', { hasText: name }).first().locator('i'));
    assert.ok(Math.abs(hueOf(there) - hueOf(colour)) < 12, `${name}: ${there} and ${colour}`);
  }
  await close();
});

test('names in findings lead to the row and the time, or to their tab', async () => {
  const { page, close } = await open(await serve(ranks4), { hash: 'view=overview' });
  await page.waitForFunction(() => window.tacho.app.overview.findings_ready !== false);
  const link = page.locator('.findings a[data-link="rank"]').first();
  await link.waitFor();
  const rank = Number((await link.innerText()).replace(/\D/g, ''));
  await link.click();
  await page.waitForFunction(() => window.tacho.app.view === 'timeline');
  await settled(page);
  const shown = await page.evaluate(() => {
    const { app, timeline } = window.tacho;
    const row = app.shown.rows.find((each) => each.track.rank === app.rank);
    return { rank: app.rank, y: row.top - timeline().scroll, height: timeline().height, evidence: app.evidence };
  });
  assert.equal(shown.rank, rank);
  assert.ok(shown.y >= 0 && shown.y < shown.height, JSON.stringify(shown));
  assert.ok(shown.evidence !== null && shown.evidence[1] > shown.evidence[0]);
  await page.goBack();
  await page.waitForFunction(() => window.tacho.app.view === 'overview');
  await page.locator('.findings a[data-link="view"]', { hasText: 'tacho ranks' }).first().click();
  await page.waitForFunction(() => window.tacho.app.view === 'ranks');
  await close();
});
