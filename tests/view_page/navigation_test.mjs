// Moving through the page: Back undoes jumps, what stands beside the pointer is about what lies under it, keys move the view by
// steps that are seen, and titles leave the figures below them free.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open, selfContained, serve, settled, start, stop } from './harness.mjs';
import { makeTrace } from './trace.mjs';

before(start);
after(stop);

const shown = (page) =>
  page.evaluate(() => {
    const { app } = window.tacho;
    return { view: app.view, kernel: app.kernel?.name ?? null, query: app.query, from: app.from, to: app.to };
  });
const entries = (page) => page.evaluate(() => history.length);
/** The address is written some times a second; this is when it has been. */
const written = (page) => page.waitForFunction(() => location.hash === `#${window.tacho.app.hash()}`);

test('Back goes back: tabs, findings, kernels and searches are entries, panning and typing are not', async () => {
  const trace = makeTrace(31, { slices: 300, odd: false });
  const server = await serve(trace);
  for (const address of [server.address, selfContained(trace)]) {
    const { page, close } = await open(address);
    await written(page);
    const begun = await entries(page);
    // A jump each: its entry, and what Back brings back.
    const before = [];
    const jump = async (act) => {
      await written(page);
      before.push(await shown(page));
      await act();
      if ((await shown(page)).view === 'timeline') await settled(page);
      await written(page);
      assert.equal(await entries(page), begun + before.length, `jump ${before.length}`);
    };
    await jump(() => page.getByText('show it').click());
    // Pan and zoom as one likes: the entry is the same.
    await page.evaluate(() => window.tacho.timeline().zoom(0.5));
    await page.evaluate(() => window.tacho.timeline().pan(100));
    await settled(page);
    await jump(() => page.locator('nav button', { hasText: 'Kernels' }).click());
    await jump(() => page.locator('.kernels .row').first().click());
    await jump(() => page.locator('nav button', { hasText: 'Timeline' }).click());
    await jump(async () => {
      await page.getByLabel('search', { exact: true }).fill('kernel');
      await page.getByLabel('search', { exact: true }).fill('kernel_1');
      await page.waitForFunction(() => window.tacho.app.found !== null && !window.tacho.app.searching);
    });
    // From hit to hit is one entry.
    await jump(async () => {
      await page.keyboard.press('Enter');
      await settled(page);
      await page.keyboard.press('Enter');
      await page.keyboard.press('Enter');
    });
    while (before.length > 0) {
      const expected = before.pop();
      await page.goBack();
      await page.waitForFunction(
        (want) => {
          const { app } = window.tacho;
          return app.view === want.view && (app.kernel?.name ?? null) === want.kernel && app.query === want.query;
        },
        expected,
        { timeout: 5000 },
      );
      if (expected.view === 'timeline') await settled(page);
      const now = await shown(page);
      const slack = (expected.to - expected.from) * 1e-3;
      assert.ok(
        Math.abs(now.from - expected.from) <= slack && Math.abs(now.to - expected.to) <= slack,
        `${JSON.stringify(now)} after Back, not ${JSON.stringify(expected)}`,
      );
    }
    await page.goForward();
    await page.waitForFunction(() => window.tacho.app.view === 'timeline');
    await close();
  }
  await server.close();
});

test('a tooltip is about what is under the pointer, however the view moves', async () => {
  const trace = makeTrace(31, { slices: 300 });
  const server = await serve(trace);
  const { page, close } = await open(server.address, { hash: 'view=timeline' });
  await settled(page);
  const slice = trace.slices.filter((each) => each.table === 0).sort((a, b) => b.duration - a.duration)[0];
  await page.evaluate(
    ([from, to]) => window.tacho.timeline().set(from, to),
    [slice.start - slice.duration, slice.start + 2 * slice.duration],
  );
  await settled(page);
  const box = await page.locator('canvas[aria-label="timeline"]').boundingBox();
  const y = await page.evaluate((track) => {
    const found = window.tacho.app.shown.rows.find((each) => each.track.id === track);
    return found.top + found.first + 6;
  }, slice.track);
  await page.mouse.move(box.x + box.width / 2, box.y + y);
  await page.locator('.chart .tip').waitFor();
  // Whatever the tip says must lie under the pointer.
  const check = async (what) => {
    await settled(page);
    const { at, under, tip } = await page.evaluate(() => {
      const timeline = window.tacho.timeline();
      return {
        at: timeline.timeAt(timeline.pointer.x),
        slack: (timeline.to - timeline.from) / timeline.width,
        under: timeline.under,
        tip: document.querySelector('.chart .tip')?.textContent ?? '',
      };
    });
    if (under?.what === 'slice') assert.ok(tip.includes('duration'), `${what}: no tip for a slice`);
    else if (under === null || under.what === 'row') assert.equal(tip, '', what);
    return { at, under };
  };
  const first = await check('at first');
  assert.equal(first.under.start, slice.start);
  for (const key of ['d', 'd', 'd', 'd', 'd', 'd', 'd', 'd', 'd', 'd', 'd', 'd', 'd', 's', 's', 's', 'w', '0', 'f']) {
    await page.keyboard.press(key);
    const { at, under } = await check(key);
    if (under?.what !== 'slice') continue;
    const slack = await page.evaluate(() => (window.tacho.app.to - window.tacho.app.from) / 300);
    assert.ok(
      at >= under.start - slack && (under.duration < 0 || at <= under.start + under.duration + slack),
      `after ${key} the tip is about ${under.start} for ${under.duration}, the pointer is at ${at}`,
    );
  }
  // The slice itself has gone: it was a third of the view, and the view moved by 13 steps of a twentieth.
  await page.evaluate((from) => window.tacho.timeline().set(from, from + 50), slice.start + 3 * slice.duration);
  const last = await check('elsewhere');
  assert.ok(last.under?.what !== 'slice' || last.under.start !== slice.start);
  await close();
  await server.close();
});

test('a tap of a key moves the view by a step', async () => {
  const trace = makeTrace(31, { slices: 300 });
  const server = await serve(trace);
  const { page, close } = await open(server.address, { hash: `view=timeline&from=100000&to=200000` });
  await settled(page);
  const view = () => page.evaluate(() => [window.tacho.app.from, window.tacho.app.to]);
  for (const key of ['d', 'a', 'w', 's', 'd', 'a', 'w', 's', 'ArrowRight', 'ArrowLeft']) {
    const before = await view();
    await page.keyboard.press(key);
    await settled(page);
    const after = await view();
    const span = before[1] - before[0];
    const [moved, zoom] = [(after[0] - before[0]) / span, (after[1] - after[0]) / span];
    if (key === 'w') assert.ok(zoom < 0.92, `w: ${zoom}`);
    else if (key === 's') assert.ok(zoom > 1.09, `s: ${zoom}`);
    else if (['d', 'ArrowRight'].includes(key)) assert.ok(moved > 0.045, `${key}: ${moved}`);
    else assert.ok(moved < -0.045, `${key}: ${moved}`);
  }
  await close();
  await server.close();
});

test('tracks are filtered, hidden and pinned, and a link shows the same', async () => {
  const trace = makeTrace(31, { slices: 300, odd: false });
  const server = await serve(trace);
  for (const address of [server.address, selfContained(trace)]) {
    const { page, close } = await open(address, { hash: 'view=timeline', viewport: { width: 1000, height: 700 } });
    await settled(page);
    const names = (on) => on.locator('.names .row .title').allTextContents();
    const all = await names(page);
    const queue = all.find((name) => /queue|stream/i.test(name));
    const thread = all.find((name) => /thread/i.test(name));
    assert.ok(queue !== undefined && thread !== undefined, all.join());
    // Filter.
    await page.getByLabel('filter tracks').fill(thread.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    await page.waitForFunction((count) => document.querySelectorAll('.names .row').length < count, all.length);
    const filtered = await names(page);
    assert.ok(filtered.includes(thread) && !filtered.includes(queue), filtered.join());
    await page.getByLabel('filter tracks').fill('');
    // Hide.
    const row = (name) => page.locator('.names .row').filter({ hasText: name }).first();
    await row(thread).hover();
    await row(thread)
      .getByLabel(/^hide /)
      .click();
    assert.ok(!(await names(page)).includes(thread));
    // Pin: it is drawn at the top, and stays there.
    await row(queue).hover();
    await row(queue).getByLabel(/^pin /).click();
    await settled(page);
    const drawn = () =>
      page.evaluate(() => {
        const timeline = window.tacho.timeline();
        const [top] = window.tacho.app.shown.rows;
        return { id: top.track.id, pinned: top.pinned, line: [...timeline.line(top.first + 4)] };
      });
    const before = await drawn();
    assert.equal(before.pinned, true);
    assert.ok(new Set(before.line).size > 2, 'its slices are drawn');
    await page.evaluate(() => window.tacho.timeline().set(0, window.tacho.app.to, 60));
    await settled(page);
    const after = await drawn();
    assert.deepEqual(after, before);
    // What is under the pointer there is of the pinned row.
    const box = await page.locator('canvas[aria-label="timeline"]').boundingBox();
    const x = before.line.findIndex((each, i) => each !== before.line[i + 2] && i > 20) + 1;
    await page.mouse.move(box.x + x, box.y + 8);
    await page.waitForFunction(() => window.tacho.timeline().under !== null);
    assert.equal(await page.evaluate(() => window.tacho.timeline().under.row.track.id), before.id);
    // The address.
    await written(page);
    const hash = await page.evaluate(() => location.hash.slice(1));
    const second = await open(address, { hash, viewport: { width: 1000, height: 700 } });
    await settled(second.page);
    assert.deepEqual(await names(second.page), await names(page));
    await second.page.getByRole('button', { name: '1 hidden' }).click();
    assert.ok((await names(second.page)).includes(thread));
    await second.close();
    await close();
  }
  await server.close();
});

test('the title of a kernel covers no figure, however long it is', async () => {
  const trace = makeTrace(23, { slices: 300, odd: false });
  const long = `void at::native::elementwise_kernel<${Array.from({ length: 40 }, (_, i) => `type_${i}`).join(', ')} >(int)`;
  for (let i = 1; i < 6; ++i) trace.names[i] = `${long}${i}`;
  const page0 = selfContained(trace);
  for (const [width, height] of [
    [1000, 700],
    [1440, 900],
    [1920, 1080],
  ]) {
    const { page, close } = await open(page0, { hash: 'view=kernels', viewport: { width, height } });
    await page.locator('.kernels .row').first().click();
    await page.locator('.plots .facts').waitFor();
    const boxes = await page.evaluate(() =>
      ['h2', '.facts', 'h3', '.plot'].map((each) => {
        const { top, bottom } = document.querySelector(`.plots ${each}`).getBoundingClientRect();
        return { top, bottom };
      }),
    );
    for (let i = 1; i < boxes.length; ++i)
      assert.ok(boxes[i].top >= boxes[i - 1].bottom - 0.5, `${width}: ${JSON.stringify(boxes)}`);
    await close();
  }
});
