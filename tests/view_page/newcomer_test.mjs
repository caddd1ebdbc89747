// What a newcomer meets in the first minutes, on recorded runs: the times add up, names are readable, rows can be reached by
// keys, nothing overlaps, and each number has its unit. Beside it: navigation_test.mjs (Back, tooltips, titles over figures),
// served_test.mjs (the first view ends with the run, busy streams first), compare_test.mjs (two runs), tools_test.mjs (rates,
// stacks over time, colours), code_test.mjs (operators, modules, lines; runs without a GPU), sql_test.mjs (questions).
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { build, folder, open, settled, start, stop } from './harness.mjs';
import { data, query, run, serve, write } from './program.mjs';

const h100 = path.join(data, 'traces', 'kineto_h100_qwen1.5-0.5b.json.gz');
const gfx950 = path.join(data, 'traces', 'rocprofv3_gfx950_results.json.gz');
const ranks4 = path.join(data, 'ranks4');
const workloads = path.join(data, 'workloads');
const kSizes = [
  [1920, 1080],
  [1440, 900],
  [1000, 700],
];
before(start);
after(stop);

test('the headline, its shares and the axis are of one length', async () => {
  const { page, close } = await open(await serve(h100), { hash: 'view=overview' });
  await page.waitForFunction(() => window.tacho.app.overview.provisional !== true);
  const headline = await page.locator('.headline').first().innerText();
  const length = await page.evaluate(() => window.tacho.app.current.run_length);
  assert.ok(headline.includes(`${(length / 1e6).toPrecision(4)} ms`), headline);
  const shares = [...headline.matchAll(/([\d.]+) %/g)].map((each) => Number(each[1]));
  assert.ok(Math.abs(shares.reduce((sum, each) => sum + each, 0) - 100) < 1, headline);
  const home = await page.evaluate(() => window.tacho.app.home);
  assert.ok(Math.abs(home[1] - home[0] - length) < 1);
  await close();
});

test('what a device did adds up to the run, also where it began late', async () => {
  for (const name of ['traces/kineto_h100_qwen1.5-0.5b.json.gz', 'rpd/matmul_result.rpd']) {
    const { page, close } = await open(await serve(path.join(data, name)), { hash: 'view=overview' });
    await page.waitForFunction(() => window.tacho.app.overview.provisional !== true);
    const headline = await page.locator('.headline').first().innerText();
    const shares = [...headline.matchAll(/([\d.]+) %/g)].map((each) => Number(each[1]));
    assert.ok(Math.abs(shares.reduce((sum, each) => sum + each, 0) - 100) < 0.25, headline);
    await close();
  }
});

test("a launch has CUDA's words on NVIDIA's GPUs and work-items on AMD's", async () => {
  for (const [file, grid] of [
    [h100, /^\d[\d,]* x \d+ x \d+ blocks$/],
    [gfx950, /^\d[\d,]* x \d+ x \d+ work-items$/],
  ]) {
    const { page, close } = await open(await serve(file), { hash: 'view=timeline' });
    await settled(page);
    // The first row of the first table is a launch.
    const columns = await page.evaluate(async () => (await window.tacho.app.source.slice(0, '0')).columns);
    const text = columns.map(([title, value]) => `${title} ${value}`).join('; ');
    assert.ok(columns.some(([title, value]) => title === 'grid' && grid.test(value)) || grid.test(text), text);
    await close();
  }
});

test('a row of the overview leads to its place, by mouse and by keys', async () => {
  const { page, close } = await open(await serve(h100), { hash: 'view=overview' });
  await page.waitForFunction(() => window.tacho.app.overview.findings !== undefined);
  // Headings for readers of screens, and rows that Tab reaches.
  const titles = await page.locator('h2').allInnerTexts();
  for (const title of ['Findings', 'Kernels', 'API calls']) assert.ok(titles.includes(title), titles.join());
  const reachable = await page.locator('table[data-kind="kernel"] tbody button').count();
  assert.ok(reachable >= 8, `${reachable} rows`);
  await page.locator('table[data-kind="kernel"] tbody button').nth(1).focus();
  await page.keyboard.press('Enter');
  assert.notEqual(await page.evaluate(() => window.tacho.app.kernel?.text ?? null), null);
  await page.locator('table[data-kind="api"] tbody button').first().click();
  await page.waitForFunction(() => window.tacho.app.view === 'timeline' && window.tacho.app.query !== '');
  await close();
});

test('names that begin alike are told apart in every table', async () => {
  const page0 = await write(h100);
  for (const [width, height] of kSizes)
    for (const view of ['overview', 'kernels']) {
      const { page, close } = await open(page0, { hash: `view=${view}`, viewport: { width, height } });
      await page
        .locator(view === 'kernels' ? '.kernels .row' : 'table[data-kind="kernel"] tbody tr')
        .first()
        .waitFor();
      await page.waitForTimeout(100);
      const names = await page
        .locator(view === 'kernels' ? '.kernels .row .name' : 'table[data-kind="kernel"] td.name')
        .evaluateAll((all) =>
          all.slice(0, 10).map((each) => {
            const text = each.querySelector('bdi') ?? each;
            return text.textContent;
          }),
        );
      assert.equal(new Set(names).size, names.length, `${view} at ${width}: ${names.join('\n')}`);
      await close();
    }
});

test('a cell of the heat map leads to the rank, with its collective selected, and the address keeps it', async () => {
  const { page, close } = await open(await serve(ranks4), { hash: 'view=ranks' });
  const canvas = page.locator('.heat canvas');
  await canvas.waitFor();
  const [gutter, head, wide, high] = (await canvas.getAttribute('data-cell')).split(' ').map(Number);
  await canvas.click({ position: { x: gutter + 5.5 * wide, y: head + 2.5 * high } });
  await page.waitForFunction(() => window.tacho.app.view === 'timeline' && window.tacho.app.selected !== null);
  await settled(page);
  const seen = await page.evaluate(() => {
    const { app, timeline } = window.tacho;
    const at = timeline().yOf(app.slice.track, app.slice.lane);
    return { y: at.y, height: timeline().height, name: app.slice.name, hash: app.hash() };
  });
  assert.ok(seen.y > 0 && seen.y < seen.height, JSON.stringify(seen));
  assert.match(seen.name, /nccl/);
  assert.match(seen.hash, /rank=2/);
  assert.match(seen.hash, /step=5/);
  assert.match(seen.hash, /collective=\d+/);
  await close();
});

test('sizes, rates and durations have the units of the terminal', async () => {
  const { page, close } = await open(await serve(ranks4), { hash: 'view=overview' });
  await page.waitForFunction(() => window.tacho.app.overview.provisional !== true);
  const copies = await page.locator('table[data-kind="copy"]').innerText();
  assert.match(copies, /GB\/s/);
  assert.doesNotMatch(await page.locator('main').innerText(), /\d µs|GiB\/s/);
  // A tooltip of the strip says each share once.
  const box = await page.locator('.strip canvas').first().boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 40);
  const tip = await page.locator('.strip .tip').first().innerText();
  const said = [...tip.matchAll(/([\d.]+ % copying).*\1/g)];
  assert.equal(said.length, 0, tip);
  await close();
});

test('counters begin with a sentence, and what is implausible is folded below the findings', async () => {
  for (const [width, height] of kSizes) {
    const { page, close } = await open(await write(path.join(workloads, 'synth_a/MI200')), {
      viewport: { width, height },
    });
    await page.locator('.report .lead').waitFor();
    const [lead, findings, folded] = await page.evaluate(() => {
      const root = document.querySelector('.report').shadowRoot;
      return ['.lead', '#findings', '#implausible'].map((each) => root.querySelector(each).getBoundingClientRect().top);
    });
    assert.ok(lead < 330 && lead < findings && findings < folded, `${lead} ${findings} ${folded}`);
    const details = page.locator('#implausible');
    assert.equal(await details.evaluate((each) => each.open), false);
    await details.locator('summary').click();
    assert.ok((await details.locator('li').count()) > 3);
    assert.equal(await page.locator('h1').innerText(), 'synth_a/MI200');
    // The contents are seen whole.
    const cut = await page.evaluate(() => {
      const nav = document.querySelector('.report').shadowRoot.querySelector('nav');
      return [...nav.querySelectorAll('a')].filter((each) => each.getBoundingClientRect().right > innerWidth).length;
    });
    assert.equal(cut, 0);
    await close();
  }
});

test('text can be read: contrast of at least 4.5 in both schemes', async () => {
  const page0 = await write(h100);
  for (const colorScheme of ['light', 'dark'])
    for (const view of ['overview', 'timeline', 'kernels', 'code', 'flame']) {
      const { page, close } = await open(page0, { hash: `view=${view}`, colorScheme });
      await page.waitForTimeout(150);
      const poor = await page.evaluate(() => {
        const channels = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
        const linear = (x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4);
        const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
        const groundOf = (each) => {
          for (let at = each; at !== null; at = at.parentElement) {
            const [r, g, b, alpha = 1] = channels(getComputedStyle(at).backgroundColor);
            if (alpha > 0.95) return [r, g, b];
          }
          return [255, 255, 255];
        };
        const found = [];
        for (const each of document.querySelectorAll('body *')) {
          const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
          if (!own || each.closest('[disabled], [aria-disabled="true"], select, option') !== null) continue;
          const box = each.getBoundingClientRect();
          if (box.width === 0 || box.height === 0) continue;
          const style = getComputedStyle(each);
          if (style.visibility === 'hidden' || Number(style.opacity) < 1) continue;
          const [a, b] = [luminance(channels(style.color)), luminance(groundOf(each))];
          const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          if (contrast < 4.45)
            found.push(`${each.className || each.tagName} "${each.textContent.slice(0, 30)}" ${contrast.toFixed(2)}`);
        }
        return [...new Set(found)].slice(0, 8);
      });
      assert.deepEqual(poor, [], `${view}, ${colorScheme}`);
      await close();
    }
});

test('no view is wider than the window, and no line of text lies over another', async () => {
  const files = [await write(h100), await write(ranks4), await write(path.join(workloads, 'vcopy/MI200'))];
  for (const file of files)
    for (const [width, height] of kSizes) {
      const { page, close } = await open(file, { viewport: { width, height } });
      const tabs = await page.locator('nav[aria-label="views"] button').count();
      for (let i = 0; i < tabs; ++i) {
        await page.locator('nav[aria-label="views"] button').nth(i).click();
        await page.waitForTimeout(120);
        const { over, covered } = await page.evaluate(() => {
          const heads = [
            ...document.querySelectorAll('h2, .headline, .sentence, .legend, .bar-top, .kinds, .note'),
          ].filter(
            (each) => each.getBoundingClientRect().height > 0 && each.closest('.scroll, .list, .across') === null,
          );
          const boxes = heads.map((each) => [each, each.getBoundingClientRect()]);
          const covered = [];
          boxes.forEach(([a, x], i) =>
            boxes.slice(i + 1).forEach(([b, y]) => {
              if (a.contains(b) || b.contains(a)) return;
              const wide = Math.min(x.right, y.right) - Math.max(x.left, y.left);
              const high = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
              if (wide > 2 && high > 2) covered.push(`${a.textContent.slice(0, 40)} | ${b.textContent.slice(0, 40)}`);
            }),
          );
          return { over: document.documentElement.scrollWidth - innerWidth, covered };
        });
        assert.ok(over <= 0, `${path.basename(file)}, tab ${i} at ${width}: ${over} pixels too wide`);
        assert.deepEqual(covered, [], `${path.basename(file)}, tab ${i} at ${width}`);
      }
      await close();
    }
});

test('a run of which only a moment is known says so', async () => {
  const file = path.join(folder, 'moment.json');
  writeFileSync(
    file,
    JSON.stringify({ traceEvents: [{ ph: 'i', s: 'g', name: 'Iteration Start', pid: 1, tid: 1, ts: 1000 }] }),
  );
  const marks = (await query(file, 'SELECT count(*) FROM tacho.marker'))[0][0];
  assert.equal(marks, 1);
  const { page, close } = await open(await serve(file), { hash: 'view=overview' });
  const headline = await page.locator('.headline').first().innerText();
  assert.match(headline, /^Nothing that takes time was recorded/);
  await close();
});

test('sums of tacho watch and of --aggregate say what they are instead of what they lack', async () => {
  const vcopy = path.join(build, 'examples/vcopy');
  const sums = path.join(folder, 'sums.tacho');
  const aggregate = path.join(folder, 'aggregate.tacho');
  await run('watch', '-q', '-o', sums, '--', vcopy);
  await run('trace', '-q', '--aggregate', '-o', aggregate, '--', vcopy);
  for (const [file, begin] of [
    [sums, /^Sums of [\d.]+ m?s that tacho watch kept, without single operations\.$/],
    [
      aggregate,
      /^Recorded with --aggregate: sums over [\d.]+ m?s without single events, so nothing tells when a device was busy\.$/,
    ],
  ]) {
    const { page, close } = await open(await write(file), { hash: 'view=overview' });
    assert.match(await page.locator('.headline').first().innerText(), begin);
    const text = await page.locator('.overview').innerText();
    for (const wrong of ['Nothing that takes time', 'no device ran', 'No finding', 'are not in it', 'lack inputs'])
      assert.ok(!text.includes(wrong), text);
    await close();
  }
});
