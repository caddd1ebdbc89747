// The page of tacho view on recorded runs, served by tacho and self-contained: numbers shown equal those of tacho query, and
// the two sources draw the same.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { open, settled, start, stop } from './harness.mjs';
import { data, query, run, serve, write } from './program.mjs';

const files = [
  'traces/kineto_h100_qwen1.5-0.5b.json.gz',
  'traces/kineto_mi300x_resnet_checkpoint.json.gz',
  'traces/rocprofv3_gfx950_results.json.gz',
].map((each) => path.join(data, each));

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
      await on.waitForFunction(
        () => (window.tacho.app.current.ready ?? 1) >= 1 && window.tacho.app.overview.provisional !== true,
      );
      const shown = async (expected, count) => {
        await on.waitForFunction((rows) => window.tacho.app.kernelsListed === rows, count);
        // The rows are virtual: scroll through all of them.
        const rows = new Map();
        for (let top = 0; ; top += 300) {
          await on.evaluate((y) => (document.querySelector('.kernels .scroll').scrollTop = y), top);
          await on.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
          for (const row of await on
            .locator('.kernels .row')
            .evaluateAll((all) =>
              all.map((each) => [each.dataset.name, [...each.children].map((cell) => cell.title || cell.textContent)]),
            ))
            rows.set(row[0], row[1]);
          if (
            await on.evaluate(() => {
              const box = document.querySelector('.kernels .scroll');
              return box.scrollTop + box.clientHeight >= box.scrollHeight - 1;
            })
          )
            break;
        }
        const numbers = [...rows.values()]
          .map(([, , total, launches, , least, most]) =>
            [whole(launches), whole(total), whole(least), whole(most)].join(' '),
          )
          .sort();
        assert.deepEqual(numbers, expected.map((row) => row.slice(1, 5).join(' ')).sort());
      };
      const all = await query(
        file,
        'SELECT name, count(*), sum(duration), min(duration), max(duration) FROM tacho.dispatch GROUP BY name',
      );
      assert.ok(all.length > 5);
      await shown(all, all.length);

      // A span: exactly the parts of launches that lie in it.
      const { t0, length } = await on.evaluate(() => ({
        t0: window.tacho.app.current.t0,
        length: window.tacho.app.length,
      }));
      const [from, to] = [Math.floor(length * 0.4), Math.floor(length * 0.47)];
      const [a, b] = [BigInt(t0) + BigInt(from), BigInt(t0) + BigInt(to)];
      const part = `(min("end", ${b}) - max(start, ${a}))`;
      const within = await query(
        file,
        `SELECT name, count(*), sum(${part}), min(${part}), max(${part}) FROM tacho.dispatch WHERE start < ${b} AND "end" > ${a} GROUP BY name`,
      );
      await on.evaluate((span) => window.tacho.app.choose(span, true), [from, to]);
      await shown(within, within.length);
      await on.evaluate(() => window.tacho.app.choose(null, true));

      // The overview's calls, and what a search counts.
      await on.evaluate(() => (window.tacho.app.view = 'overview'));
      const calls = await query(
        file,
        "SELECT api.name, count(*), sum(duration), min(duration), max(duration) FROM tacho.api JOIN tacho.function ON api.dim = function.id WHERE domain NOT IN ('operator', 'python') GROUP BY api.name ORDER BY 3 DESC LIMIT 10",
      );
      const table = await on
        .locator('table[data-kind="api"] tbody tr')
        .evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.title || cell.textContent)));
      assert.deepEqual(
        table
          .map(([, , total, count, , least, most]) => [whole(count), whole(total), whole(least), whole(most)])
          .sort(),
        calls.map((row) => row.slice(1, 5)).sort(),
      );
      const found = await on.evaluate(async () => {
        const { app } = window.tacho;
        const kernel = (await app.source.span(0, 0, app.length)).kernels[0];
        const { names } = await app.source.search(
          0,
          `^${kernel.text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`,
          true,
          null,
        );
        return [names.reduce((sum, each) => sum + each.count, 0), names.reduce((sum, each) => sum + each.total, 0)];
      });
      assert.deepEqual(found, [...all].sort((x, y) => y[2] - x[2])[0].slice(1, 3));

      // The same pixels from both sources.
      await on.evaluate(() => (window.tacho.app.view = 'timeline'));
      await settled(on);
      const pictures = [];
      for (const [x, y] of [
        [0, 1],
        [0.3, 0.35],
        [0.31, 0.311],
        [0.5, 0.50005],
      ]) {
        await on.evaluate(([p, q]) => window.tacho.timeline().set(p, q), [length * x, length * y]);
        await settled(on);
        pictures.push(
          await on.evaluate(() => {
            const controller = window.tacho.timeline();
            const theme = window.tacho.app.colours;
            return window.tacho.app.shown.rows
              .filter((row) => row.what === 'slices')
              .map((row) =>
                [...controller.line(row.top - controller.scroll + row.first + 1)]
                  .map((each) => (each === theme.lane || each === theme.grid || each === theme.outside ? 0 : 1))
                  .join(''),
              );
          }),
        );
      }
      drawn.push(pictures);
      await opened.close();
    }
    drawn[0].forEach((picture, i) =>
      picture.forEach((line, row) => {
        // A bin that is partly covered may be one column beside.
        for (let x = 1; x + 1 < line.length; ++x)
          if (line[x] === '1')
            assert.ok(drawn[1][i][row].slice(x - 1, x + 2).includes('1'), `view ${i} row ${row} column ${x}`);
      }),
    );
  });

test('what was open around a launch is what the rows say, in both pages', async () => {
  const file = files[0];
  const around = await query(
    file,
    `SELECT d.id,
      (SELECT group_concat(o.name, '\n') FROM tacho.api o WHERE o.track = a.track AND o.start <= a.start AND o."end" >= a."end" AND o.id <> a.id),
      (SELECT group_concat(o.name, '\n') FROM tacho.marker o WHERE o.track = a.track AND o.start <= a.start AND o."end" >= a."end")
    FROM tacho.dispatch d JOIN tacho.api a ON a.correlation = d.correlation WHERE d.id % 100 = 7 LIMIT 12`,
  );
  assert.ok(around.length >= 10);
  for (const address of [await serve(file), await write(file)]) {
    const { page, close } = await open(address, { hash: 'view=timeline' });
    await page.waitForFunction(
      () => (window.tacho.app.current?.ready ?? 1) >= 1 && window.tacho.timeline()?.frames.length > 0,
    );
    for (const [id, calls, markers] of around) {
      const says = await page.evaluate((row) => window.tacho.app.source.slice(0, row), String(id - 1));
      assert.deepEqual(
        [...says.around].sort(),
        [calls, markers]
          .filter((each) => each !== null)
          .flatMap((each) => each.split('\n'))
          .sort(),
        `dispatch ${id}`,
      );
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

for (const file of [files[1], files[2]])
  test(`${path.basename(file)}: findings are the same in text, JSON and both pages, and their links lead to the evidence`, async () => {
    const says = JSON.parse(await run('report', 'findings', file, '--output-format', 'json'));
    const plain = (text) => text.replace(/\s+/g, ' ').trim();
    const text = plain(await run('report', 'findings', file, '--missing'));
    assert.ok(says.findings.length >= 2 && says.findings.some((each) => each.spans.length > 0));
    says.findings.forEach((each, i) => {
      assert.ok(
        text.includes(
          `${i + 1}. ${each.state === 'possible' ? 'possible: ' : ''}${each.title}${each.where === '' ? '' : ` (${each.where})`} `,
        ),
        each.title,
      );
      for (const part of [each.sentence, ...each.evidence, `refuted if ${each.refuted_by}`, ...each.try])
        assert.ok(text.includes(plain(part)), part);
    });
    // Rules that lack the same stand in one line.
    for (const each of says.not_judged)
      assert.ok(
        new RegExp(
          `[ ,]${each.rule}(, [a-z0-9-]+)*: needs? ${each.needs.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}( |$)`,
        ).test(text),
        each.rule,
      );
    for (const address of [await serve(file), await write(file)]) {
      const { page, close } = await open(address);
      await page.waitForFunction(
        () =>
          (window.tacho.app.current.ready ?? 1) >= 1 &&
          window.tacho.app.overview.provisional !== true &&
          window.tacho.app.overview.findings_ready !== false,
      );
      const articles = page.locator('.findings article');
      await articles.first().waitFor();
      const shown = await articles.evaluateAll((all) =>
        all.map((each) => ({
          state: each.className,
          sentence: each.querySelector('.sentence').textContent,
          evidence: [...each.querySelectorAll('ul:not(.try) li')].map((line) => line.textContent),
          foot: each.querySelector('.foot').textContent,
          advice: [...each.querySelectorAll('.try li')].map((line) => line.textContent),
          places: each.querySelectorAll('.places button').length,
        })),
      );
      assert.deepEqual(
        shown.map(({ state, evidence, advice, places }) => ({ state, evidence, advice, places })),
        says.findings.map((each) => ({
          state: each.state,
          evidence: each.evidence,
          advice: each.try,
          places: Math.min(5, each.spans.length),
        })),
      );
      says.findings.forEach((each, i) => {
        assert.equal(
          plain(shown[i].sentence),
          plain(`${each.title}${each.where}${each.sentence}${each.state === 'possible' ? ' possible' : ''}`),
        );
        assert.ok(shown[i].foot.includes(`refuted by: ${each.refuted_by}`), shown[i].foot);
        assert.equal(shown[i].foot.includes('could save '), each.saves !== null, shown[i].foot);
        assert.equal(shown[i].foot.includes('could free '), each.frees !== null, shown[i].foot);
      });
      const lacking = page.locator('.overview button[aria-expanded]');
      await lacking.click();
      assert.deepEqual(
        await page.locator('.unjudged > span').allTextContents(),
        says.not_judged.map((each) => `${each.title}: needs ${each.needs}`),
      );

      // Each link: the timeline shows the stretch, with a little beside it, marks it, and has its track in sight.
      for (const [i, finding] of says.findings.entries())
        for (const [n, span] of finding.spans.slice(0, 5).entries()) {
          await articles.nth(i).locator('.places button').nth(n).click();
          await page.waitForFunction(() => window.tacho.app.view === 'timeline');
          await settled(page);
          const at = await page.evaluate(() => ({
            view: [window.tacho.timeline().from, window.tacho.timeline().to],
            evidence: window.tacho.app.evidence,
          }));
          assert.deepEqual(at.evidence, [span.from, span.to]);
          assert.ok(
            at.view[0] <= span.from && at.view[1] >= span.to,
            `${at.view} does not hold ${span.from} to ${span.to}`,
          );
          assert.ok(
            at.view[1] - at.view[0] <= 1.3 * (span.to - span.from) + 200,
            `${at.view} is far wider than ${span.from} to ${span.to}`,
          );
          // The page numbers its lines itself. Of a high row the top may lie above what is in sight, its first lane may not.
          const out = await page.evaluate(
            ([which, place, text]) => {
              const { app } = window.tacho;
              const [controller, spans] = [window.tacho.timeline(), app.overview.findings[which].spans];
              const rows = app.shown.rows.filter(
                (row) => row.what === 'slices' && spans[place].tracks.includes(row.track.id),
              );
              const seen = rows.filter(
                (row) =>
                  row.top + row.first >= controller.scroll &&
                  row.top + row.first + row.lane <= controller.scroll + controller.height,
              );
              return seen.length > 0 || spans[place].tracks.length === 0
                ? ''
                : `${text}: none of ${spans[place].tracks} is in sight`;
            },
            [i, n, finding.title],
          );
          assert.equal(out, '');
          assert.equal(
            await page.evaluate(
              ([which, place]) => window.tacho.app.overview.findings[which].spans[place].tracks.length > 0,
              [i, n],
            ),
            span.tracks.length > 0,
          );
          await page.evaluate(() => (window.tacho.app.view = 'overview'));
          await articles.first().waitFor();
        }
      await close();
    }
  });

test('a view that is not opened asks for nothing', async () => {
  const { page, close } = await open(await serve(files[0]));
  await page.waitForFunction(
    () => (window.tacho.app.current.ready ?? 1) >= 1 && window.tacho.app.overview.findings_ready !== false,
  );
  const asked = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  const running = new Set();
  page.on('request', (request) => running.add(request));
  for (const end of ['requestfinished', 'requestfailed']) page.on(end, (request) => running.delete(request));
  const since = async () => {
    // Half a second in which nothing is asked or under way.
    for (let quiet = 0, before = -1; quiet < 10; before = asked.length) {
      await page.waitForTimeout(50);
      quiet = running.size === 0 && asked.length === before ? quiet + 1 : 0;
    }
    return [...new Set(asked.splice(0))].sort();
  };
  await page.reload();
  await page.locator('.overview .tables').waitFor();
  // Names are asked for the colours of the overview's own bars.
  assert.deepEqual(await since(), ['/', '/api/document', '/api/names', '/api/overview']);
  // The watch sees what an opened view asks for: else it would hold of anything.
  for (const [view, sign, address] of [
    ['flame', '.flame-box', '/api/flame'],
    ['sql', 'textarea', '/api/schema'],
    ['timeline', '.chart canvas', '/api/tiles'],
  ]) {
    await page.evaluate((name) => (window.tacho.app.view = name), view);
    await page.locator(sign).first().waitFor();
    for (let i = 0; i < 200 && !asked.includes(address); ++i) await page.waitForTimeout(50);
    const all = await since();
    assert.ok(all.includes(address), `${view} asked for ${all}`);
    for (const other of ['/api/flame', '/api/schema', '/api/tiles'])
      if (other !== address) assert.ok(!all.includes(other), `${view} asked for ${other}`);
  }
  await close();
});

test('the first view ends with the run, though marks and readings go on', async () => {
  const file = files[0];
  const says = /run of ([0-9.]+) ms/.exec((await run('info', file)).replace(/\s+/g, ' '));
  for (const address of [await serve(file), await write(file)]) {
    const { page, close } = await open(address, { hash: 'view=timeline' });
    await settled(page);
    const seen = await page.evaluate(() => {
      const { app } = window.tacho;
      return { from: app.from, to: app.to, length: app.length, hash: app.hash() };
    });
    assert.ok(Math.abs((seen.to - seen.from) / 1e6 - Number(says[1])) < 0.01, `${JSON.stringify(seen)} for ${says[0]}`);
    assert.ok(seen.length > seen.to * 1.2, 'there is more beside the run');
    assert.equal(seen.hash, 'view=timeline');
    assert.equal(await page.locator('.corner .range').textContent(), `${says[1]} ms in view`);
    // What lies beyond can be looked at, and 0 comes back.
    await page.evaluate((to) => window.tacho.timeline().set(0, to), seen.length);
    await settled(page);
    assert.ok((await page.evaluate(() => window.tacho.app.to)) > seen.to * 1.2);
    await page.keyboard.press('0');
    await settled(page);
    assert.ok(Math.abs((await page.evaluate(() => window.tacho.app.to)) - seen.to) < 1);
    await close();
  }
});

test('an AMD job opens on its busiest stream, with those that did next to nothing folded', async () => {
  const file = files[2];
  const page0 = await write(file);
  const { page, close } = await open(page0, { hash: 'view=timeline' });
  await settled(page);
  const seen = await page.evaluate(() => {
    const { app } = window.tacho;
    const queues = app.current.tracks.filter((each) => each.kind === 'queue');
    return {
      rows: app.shown.rows.map((row) => row.track.name),
      busy: Object.fromEntries(queues.map((each) => [each.name, each.busy])),
      run: app.current.run_length,
    };
  });
  const sums = await query(
    file,
    `SELECT SUM(duration) FROM (SELECT track, duration FROM tacho.dispatch UNION ALL SELECT track, duration FROM tacho.copy UNION ALL SELECT track, duration FROM tacho.fill) GROUP BY track ORDER BY 1 DESC`,
  );
  // Time in which a stream was busy is at most the sum of what it ran; some streams have several rows of table track.
  const busy = Object.values(seen.busy).sort((a, b) => b - a);
  const total = (list) => list.reduce((sum, each) => sum + each, 0);
  assert.ok(busy.length <= sums.length && busy[0] > sums[0][0] * 0.9, `${busy[0]} of ${sums[0][0]}`);
  assert.ok(total(busy) <= total(sums.flat()) && total(busy) > total(sums.flat()) * 0.9);
  const first = seen.rows.find((name) => /^GPU 0 stream/.test(name));
  assert.equal(seen.busy[first], busy[0]);
  const least = busy.filter((each) => each < seen.run / 1000).length;
  assert.ok(least > 500);
  assert.ok(seen.rows.includes(`${least} streams below 0.1 % busy`), seen.rows.join('\n'));
  assert.ok(seen.rows.length < 12, `${seen.rows.length} rows`);
  await close();
});
