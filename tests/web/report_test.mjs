// The HTML report in a browser: its numbers are those of the command line for every choice, its drawings stand where the
// numbers say, and nothing in a recording can run.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import {
  analyze,
  choose,
  compareTables,
  folder,
  html,
  json,
  open,
  openPlain,
  shownTables,
  start,
  stop,
  tacho,
  workloads,
} from './harness.mjs';

before(start);
after(stop);

const synth = path.join(workloads, 'synth_a/MI200');
const vcopy = path.join(workloads, 'vcopy/MI200');

test('numbers of every choice equal those of the command line', async () => {
  const { page, close } = await open(await html('-p', synth));
  for (const [choice, args] of [
    [{}, []],
    [{ normalisation: 'per_wave' }, ['-n', 'per_wave']],
    [{ normalisation: 'per_cycle', time: 'us' }, ['-n', 'per_cycle', '-t', 'us']],
    [{ normalisation: 'per_second', time: 'ms' }, ['-n', 'per_second', '-t', 'ms']],
    [{ normalisation: 'per_kernel', time: 'ns', kernels: [0] }, ['-k', '0']],
    [{ kernels: [1, 3] }, ['-k', '1', '3']],
    [{ normalisation: 'per_wave', kernels: [4], time: 's' }, ['-k', '4', '-n', 'per_wave', '-t', 's']],
    [{ normalisation: 'per_kernel', time: 'ns', kernels: [], dispatches: '3' }, ['-d', '3']],
    [{ dispatches: '2:7, 11 > 30' }, ['-d', '2:7', '11', '> 30']],
    [{ dispatches: '0-12', kernels: [0] }, ['-d', '0-12', '-k', '0']],
  ]) {
    await choose(page, choice);
    const document = await json('-p', synth, ...args);
    const numbers = compareTables(document, await shownTables(page));
    const errors = await page.evaluate(() => window.tacho.errors[0]);
    for (const row of document.tables.flatMap((table) => table.rows.filter((each) => each.slug !== undefined)))
      assert.ok(
        row.error === undefined ? errors[row.id] === null : Math.abs(errors[row.id] - row.error) <= 1e-12 * row.error,
        `error of ${row.id}`,
      );
    assert.ok(numbers > 700, `${numbers} numbers for ${JSON.stringify(choice)}`);
  }
  await close();
});

test('numbers of every architecture, both kinds of ratios, --compat', async () => {
  for (const [workload, ...args] of [
    ['synth_a/MI100'],
    ['synth_a/MI300X_A1'],
    ['synth_a/MI350'],
    ['synth_a/MI300X_A1_rocpd'],
    ['synth_a/MI200', '--ratio', 'avg'],
    ['synth_a/MI350', '--compat', '3.3'],
    ['vcopy/MI350'],
    ['ipblocks_SQ/MI200'],
  ]) {
    const at = path.join(workloads, workload);
    const { page, close } = await open(await html('-p', at, ...args));
    await choose(page, { normalisation: 'per_wave' });
    assert.ok(compareTables(await json('-p', at, ...args, '-n', 'per_wave'), await shownTables(page)) > 100);
    await close();
  }
});

test('the choice of the command line is where the page begins', async () => {
  const args = ['-p', synth, '-k', '1', '-d', '0:20', '-n', 'per_wave', '-b', '2', '10.1'];
  const { page, close } = await open(await html(...args));
  compareTables(await json(...args), await shownTables(page));
  assert.equal(await page.locator('input[aria-label="dispatches"]').inputValue(), '0:20');
  assert.equal(await page.locator('table[data-table="0.1"] input:checked').count(), 1);
  assert.equal(await page.locator('table[data-table="17.1"]').count(), 0);
  // From there to everything.
  await page.getByText('no filters').click();
  compareTables(await json('-p', synth, '-n', 'per_wave', '-b', '2', '10.1'), await shownTables(page));
  await close();
});

test('what is shown is rounded from the numbers, with units, and only what is computable', async () => {
  const document = await json('-p', vcopy);
  const { page, close } = await open(await html('-p', vcopy));
  const table = document.tables.find((each) => each.id === '2.1');
  const rows = await page
    .locator('table[data-table="2.1"] tbody tr')
    .evaluateAll((all) =>
      all.map((row) => [
        row.dataset.id,
        ...[...row.cells].slice(1).map((cell) => cell.textContent.replace('±', '').trim()),
      ]),
    );
  const computable = table.rows.filter((row) => row.cells[1] !== null);
  assert.deepEqual(
    rows.map((row) => row[0]),
    computable.map((row) => row.id),
  );
  rows.forEach((row, i) => {
    const [name, average, unit] = computable[i].cells;
    assert.equal(row[1], name);
    assert.equal(row[3], unit);
    const shown = Number(row[2].replaceAll(',', ''));
    assert.ok(
      Math.abs(shown - average) <= Math.max(0.00501, Math.abs(average) * 1e-9),
      `${name}: ${row[2]} for ${average}`,
    );
  });
  await page.fill('input[aria-label="find metrics"]', 'valu-utilization');
  assert.equal(await page.locator('table.metrics tr[data-id]').count(), 2); // 2.1 and 11.2
  await page.fill('input[aria-label="find metrics"]', '');
  const missing = document.not_computable.filter((entry) => entry.id.startsWith('17.')).map((entry) => entry.id);
  assert.ok(missing.length > 0);
  const row = page.locator(`tr[data-id="${missing.at(-1)}"]`);
  assert.equal(await row.count(), 0);
  await page.getByText('also what has no value').click();
  assert.equal(await row.count(), 1);
  await close();
});

test('what tables leave out is named, of the dispatches chosen', async () => {
  const at = path.join(workloads, 'synth_a/MI300X_A1');
  const { page, close } = await open(await html('-p', at, '-b', '10.1'));
  const notes = () => page.locator('p.left-out').allTextContents();
  for (const [choice, args] of [
    [{}, []],
    [{ kernels: [0] }, ['-k', '0']],
    [{ kernels: [], dispatches: '3:6' }, ['-d', '3:6']],
    [{ dispatches: '30:39' }, ['-d', '30:39']],
  ]) {
    await choose(page, choice);
    const { tables } = await json('-p', at, '-b', '10.1', ...args);
    const left = tables.find((table) => table.id === '10.1').left_out ?? [];
    const kernels = ({ kernel, dispatches }) => `${dispatches} of ${kernel}`;
    assert.deepEqual(
      await notes(),
      left.map(
        (each) =>
          `left out of ${each.metrics}: ${each.dispatches} of ${each.of} dispatches, ` +
          `which ${each.dispatches === 1 ? 'lacks' : 'lack'} ${each.counters} ` +
          `(${each.kernels.map(kernels).join(', ')})`,
      ),
    );
    if (choice.dispatches === undefined) assert.equal(left.length, 1);
  }
  await close();
});

test('a wrong filter says what is wrong and changes nothing', async () => {
  const { page, close } = await open(await html('-p', synth, '-b', '2'));
  const all = await shownTables(page);
  for (const [text, sentence] of [
    ['x', "'x' is no dispatch id"],
    ['>', "behind '>'"],
    ['7:3', "'7:3'"],
  ]) {
    await choose(page, { dispatches: text });
    assert.match(await page.locator('.error').textContent(), new RegExp(sentence));
    assert.deepEqual(await shownTables(page), all);
  }
  await choose(page, { dispatches: '999' });
  assert.match(await page.locator('.warning').textContent(), /No dispatch passes/);
  // The head agrees with that.
  assert.match(await page.locator('.facts').innerText(), /, 0 of 40 dispatches/);
  assert.equal(await page.locator('table[data-table="2.1"]').count(), 0);
  await close();
});

test('kernels x levels points of the roofline stand within a pixel of their logarithms', async () => {
  const document = await json('-p', synth);
  const { page, close } = await open(await html('-p', synth));
  const chart = page.locator('svg[data-chart="roofline"]');
  const places = await chart.evaluate((svg) => {
    const at = (list, attribute) =>
      [...list].map((node) => [Number(node.dataset[attribute]), Number(node.getAttribute(attribute))]);
    return {
      x: at(svg.querySelectorAll('text[data-x]'), 'x'),
      // Labels of the y axis hang four units below their line.
      y: at(svg.querySelectorAll('text[data-y]'), 'y').map(([value, y]) => [value, y - 4]),
      points: [...svg.querySelectorAll('circle.point')].map((node) => ({
        kernel: node.dataset.kernel,
        level: node.dataset.level,
        x: node.cx.baseVal.value,
        y: node.cy.baseVal.value,
      })),
    };
  });
  const along = (axis, value) => {
    const [first, last] = [axis[0], axis.at(-1)];
    return (
      first[1] +
      ((Math.log10(value) - Math.log10(first[0])) / (Math.log10(last[0]) - Math.log10(first[0]))) * (last[1] - first[1])
    );
  };
  const ai = document.roofline_ai.kernels;
  // A kernel is bound by the LDS here, whose level is shown therefore.
  assert.equal(places.points.length, ai.kernelNames.length * 4);
  ai.kernelNames.forEach((kernel, i) => {
    for (const level of ['hbm', 'l2', 'l1']) {
      const point = places.points.find((each) => each.kernel === kernel && each.level === level);
      const [intensity, performance] = [ai[`ai_${level}`][0][i], ai[`ai_${level}`][1][i]];
      assert.ok(Math.abs(point.x - along(places.x, intensity)) < 1, `${kernel} ${level} x`);
      assert.ok(Math.abs(point.y - along(places.y, performance)) < 1, `${kernel} ${level} y`);
    }
  });
  // What a pointer reads.
  await page.locator('circle.point[data-level="hbm"]').first().hover();
  const tip = await page.locator('.tip').innerText();
  const name = await page.locator('circle.point[data-level="hbm"]').first().getAttribute('data-kernel');
  const k = ai.kernelNames.indexOf(name);
  assert.ok(tip.includes(name), tip);
  assert.ok(tip.includes(`AI ${ai.ai_hbm[0][k].toFixed(2)} FLOP/byte at HBM`), tip);
  assert.ok(tip.replaceAll(',', '').includes(`${ai.ai_hbm[1][k].toFixed(2)} GFLOP/s`), tip);
  const share = document.tables[0].rows.find((row) => row.cells[0] === name).cells[5];
  assert.ok(tip.includes(`${share.toFixed(2)} % of the time`), tip);
  const text = await analyze('-p', synth, '-b', '4');
  const bound = new RegExp(`^ +${k} .*?(hbm|l2|l1|lds|valu|mfma) +([0-9.]+) +([0-9.]+)x`, 'm').exec(text);
  const names = { hbm: 'HBM', l2: 'L2', l1: 'vL1D', lds: 'LDS', valu: 'VALU', mfma: 'MFMA' };
  assert.ok(tip.includes(`bound by ${names[bound[1]]}: ${bound[2]} %`), `${tip}\n${bound[0]}`);
  assert.equal(document.roofline.kernels[k].kernel, name);
  const own = document.roofline.kernels[k].type;
  const limit = document.roofline.kernels[k].bounds[own];
  assert.ok(tip.includes(`mostly ${own}`) && tip.includes(`GFLOP/s (${own})`), tip);
  assert.ok(tip.includes(`headroom ${Number(limit.headroom).toPrecision(3)}x`), `${tip}\n${JSON.stringify(limit)}`);
  assert.equal(limit.roof, bound[1]);
  assert.ok(Math.abs(limit.reached * limit.headroom - 100) < 1e-9 * 100);
  // The drawing as a file: every point where it is on the page, nothing that needs the page.
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.locator('button[data-save="svg"]').click(),
  ]);
  const svg = readFileSync(await download.path(), 'utf8');
  assert.equal((svg.match(/<circle/g) ?? []).length, places.points.length);
  const drawn = [...svg.matchAll(/<circle[^>]* cx="([^"]+)"/g)].map((match) => Number(match[1]));
  for (const point of places.points)
    assert.ok(
      drawn.some((x) => Math.abs(x - point.x) < 1e-3),
      `${point.kernel} ${point.level}`,
    );
  assert.ok(!svg.includes('class=') && !svg.includes('var(--') && svg.includes('GFLOP/s'));
  // Roofs: as high as roofline.csv says; levels and dispatches can be switched.
  const valu = await chart
    .locator('line[data-roof="valu"][data-type="FP32"]')
    .evaluate((line) => [Number(line.dataset.peak), line.y1.baseVal.value]);
  assert.equal(valu[0], document.roofline_ceilings_dev0.FP32.valu[2]);
  assert.ok(Math.abs(valu[1] - along(places.y, valu[0])) < 1);
  await page.selectOption('select[aria-label="data type of the roofs"]', 'FP64');
  assert.equal(
    Number(await chart.locator('line[data-roof="valu"]').getAttribute('data-peak')),
    document.roofline_ceilings_dev0.FP64.valu[2],
  );
  await page.locator('#roofline label.toggle', { hasText: 'L2' }).click();
  assert.equal(await page.locator('circle.point').count(), ai.kernelNames.length * 3);
  await page.getByText('every dispatch').click();
  // Dispatches without FLOPs or without traffic have no place on log axes.
  const positive = await page.evaluate(
    () =>
      window.tacho.dispatchPoints[0]
        .flatMap((p) => (p.performance > 0 ? [p.intensity.hbm, p.intensity.l1, p.intensity.lds] : []))
        .filter((x) => x > 0).length,
  );
  assert.equal(await page.locator('circle.point').count(), positive);
  assert.ok(positive > 60);
  await close();
});

test('speed of light, instruction mix and memory chart show their metrics', async () => {
  const document = await json('-p', synth);
  const cells = (id) =>
    Object.fromEntries(document.tables.find((table) => table.id === id).rows.map((row) => [row.slug, row.cells]));
  const { page, close } = await open(await html('-p', synth));
  const bars = await page
    .locator('#sol .line')
    .evaluateAll((lines) =>
      lines.map((line) => [
        line.dataset.slug,
        Number(line.querySelector('.fill').dataset.pct),
        line.querySelector('.fill').style.width,
      ]),
    );
  const withPeak = Object.entries(cells('2.1')).filter(([, row]) => typeof row[4] === 'number');
  assert.equal(bars.length, withPeak.length);
  for (const [slug, pct, width] of bars) {
    assert.ok(Math.abs(pct - cells('2.1')[slug][4]) <= 1e-9 * Math.abs(pct), slug);
    assert.ok(Math.abs(parseFloat(width) - Math.min(100, Math.max(0, pct))) < 0.01, slug);
  }
  const mix = Object.values(cells('10.1')).map((row) => row[1]);
  const total = mix.reduce((a, b) => a + b, 0);
  const widths = await page
    .locator('#mix figure')
    .first()
    .locator('.fill')
    .evaluateAll((all) => all.map((each) => parseFloat(each.style.width)));
  widths.forEach((width, i) => assert.ok(Math.abs(width - (mix[i] / total) * 100) < 0.01));
  const drawn = await page
    .locator('svg[data-chart="memory"] g[data-slug]')
    .evaluateAll((all) => all.map((each) => [each.dataset.slug, each.textContent.trim()]));
  assert.deepEqual(drawn.map(([slug]) => slug).sort(), Object.keys(cells('3.1')).sort());
  const text = Object.fromEntries(drawn);
  for (const [slug, row] of Object.entries(cells('3.1'))) {
    if (row[1] === null) assert.match(text[slug], /—/);
    else if (Number.isInteger(row[1]) && Math.abs(row[1]) < 1000)
      assert.ok(text[slug].includes(String(row[1])), `${slug} ${row[1]} ${text[slug]}`);
  }
  await page.locator('svg[data-chart="memory"] g[data-slug="chart-l2-hit-rate"]').hover();
  assert.match(await page.locator('.tip').innerText(), /3\.1\.\d+/);
  await close();
});

test('findings are those of the JSON and follow the choice of kernels', async () => {
  const document = await json('-p', synth);
  const { page, close } = await open(await html('-p', synth));
  await page.getByText('more findings').click();
  const titles = () => page.locator('article.finding h3').allInnerTexts();
  assert.deepEqual(
    await titles(),
    document.findings.map((finding) => finding.title),
  );
  await choose(page, { kernels: [3] });
  const saxpy = document.findings.filter((finding) => finding.kernel.startsWith('saxpy'));
  assert.ok(saxpy.length > 0 && saxpy.length < document.findings.length);
  assert.deepEqual(
    await titles(),
    saxpy.map((finding) => finding.title),
  );
  const first = document.findings[0].evidence[0];
  await choose(page, { kernels: [] });
  assert.ok((await page.locator('article.finding').first().innerText()).includes(first.metric));
  await close();
});

test('several runs stand side by side, with changes as the command line computes them', async () => {
  const before = path.join(workloads, 'vcopy/MI200');
  const document = await json('-p', before, '-p', synth);
  const { page, close } = await open(await html('-p', before, '-p', synth));
  compareTables(document.runs[0], await shownTables(page, 0));
  compareTables(document.runs[1], await shownTables(page, 1));
  const rows = await page
    .locator('table.metrics tr[data-id]')
    .evaluateAll((all) =>
      all.map((row) => [row.dataset.id, [...row.querySelectorAll('td.n')].map((cell) => cell.textContent.trim())]),
    );
  const shown = new Map(rows);
  let compared = 0;
  for (const { id, values, percent } of document.comparison) {
    if (!shown.has(id) || values.includes(null)) continue;
    const [, , change] = shown.get(id);
    ++compared;
    if (percent[1] === 'inf') assert.equal(change, '+∞', id);
    else if (percent[1] === 0) assert.equal(change, '0 %', id);
    else if (Math.abs(percent[1]) >= 0.06 && Math.abs(percent[1]) < 999)
      assert.equal(change, `${percent[1] > 0 ? '+' : '−'}${Math.abs(percent[1]).toFixed(1)} %`, id);
  }
  assert.ok(compared > 100, `${compared} compared`);
  assert.equal(await page.locator('svg[data-chart="memory"]').count(), 2);
  assert.ok((await page.locator('rect.point[data-run="1"]').count()) > 0, 'the other run in the roofline');
  await page.fill('input[aria-label="least change in percent"]', '1000000');
  assert.ok((await page.locator('table.metrics tr[data-id]').count()) < rows.length / 2);
  await close();
});

test('nothing in a recording can run', async () => {
  const evil = path.join(folder, 'evil');
  const names = [
    '</script><script>window.hacked=1</script>',
    '<img src=x onerror="window.hacked=2">',
    '<!--<script>',
    "{{constructor.constructor('window.hacked=3')()}}",
    '${window.hacked=4}',
    'a\u2028b\u0000c',
  ];
  cpSync(vcopy, evil, { recursive: true });
  for (const file of ['pmc_perf.csv']) {
    const lines = readFileSync(path.join(evil, file), 'utf8').trimEnd().split('\n');
    const head = lines[0].split(',');
    const name = head.indexOf('Kernel_Name');
    const id = head.indexOf('Dispatch_ID');
    const cells = lines[1].split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/);
    const rows = names.map((each, i) =>
      cells.map((cell, c) => (c === name ? `"${each.replaceAll('"', '""')}"` : c === id ? i : cell)).join(','),
    );
    writeFileSync(path.join(evil, file), [lines[0], ...rows].join('\n') + '\n');
  }
  const info = readFileSync(path.join(evil, 'sysinfo.csv'), 'utf8').trimEnd().split('\n');
  const at = info[0].split(',').indexOf('workload_name');
  const fields = info[1].split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/);
  fields[at] = '"</title></script><script>window.hacked=5</script>"';
  writeFileSync(path.join(evil, 'sysinfo.csv'), `${info[0]}\n${fields.join(',')}\n`);
  const file = await html('-p', evil);
  const { page, close } = await open(file);
  await page.waitForTimeout(200);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator('img').count(), 0);
  assert.equal(await page.locator('script').count(), 1);
  const shown = await page.locator('table[data-table="0.1"] td.kernel').allTextContents();
  for (const name of names.slice(0, 5)) assert.ok(shown.includes(name), `${name} in ${JSON.stringify(shown)}`);
  assert.ok((await page.locator('table[data-table="1.1"]').textContent()).includes('</title>'));
  // Even what gets into the page as markup would not run: the policy knows only the page's own script.
  const ran = await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'window.hacked = 6';
    document.body.append(script);
    return window.hacked;
  });
  assert.equal(ran, undefined);
  await close().catch((error) => assert.match(error.message, /^console: .*Content Security Policy[^\n]*$/));
  // In the file itself the data is one script element whose end cannot be forged.
  const text = readFileSync(file, 'utf8');
  const data = text.slice(text.indexOf('id="data">') + 10);
  assert.ok(!data.slice(0, data.indexOf('</script>')).includes('<'));
});

test('NVIDIA: numbers of every normalisation, and rows that rest on extrapolated counts are marked', async () => {
  const part = 'l1tex__t_sectors_pipe_lsu_mem_global_op_';
  const at = path.join(folder, 'extrapolated');
  mkdirSync(path.join(at, 'perfmon'), { recursive: true });
  writeFileSync(
    path.join(at, 'sysinfo.csv'),
    'gpu_arch,gpu_model,wave_size,cu_per_gpu,max_sclk\nsm_90,H200,32,132,1980\n',
  );
  writeFileSync(
    path.join(at, 'pmc_perf_0.csv'),
    `Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,Start_Timestamp,End_Timestamp,${part}ld.sum,${part}st.sum\n` +
      '0,saxpy,0,4194304,256,0,9000,1048576,523112\n',
  );
  writeFileSync(
    path.join(at, 'perfmon/pmc_perf_0.yaml'),
    `chip: GH100\nmetrics:\n  - ${part}ld.sum\nextrapolated:\n  - ${part}st.sum\n`,
  );
  const { page, close } = await open(await html('-p', at));
  const marked = await page.$$eval('tr[data-slug]', (rows) =>
    Object.fromEntries(rows.map((row) => [row.dataset.slug, row.querySelector('.about')?.textContent ?? ''])),
  );
  assert.equal(marked['l1-global-store-sectors'], '~');
  assert.equal(marked['l1-global-load-sectors'], '');
  for (const normalisation of ['per_wave', 'per_cycle', 'per_second', 'per_kernel']) {
    await choose(page, { normalisation });
    assert.ok(compareTables(await json('-p', at, '-n', normalisation), await shownTables(page)) >= 2);
  }
  await close();
});

test('a search counts its hits, brings the first into view, goes through them and says when there is none', async () => {
  const document = await json('-p', synth);
  const { page, close } = await open(await html('-p', synth));
  const box = page.locator('input[aria-label="find metrics"]');
  const status = page.locator('.found');
  const inView = () =>
    page
      .locator('tr.hit')
      .evaluateAll((all) =>
        all.map((row) => [
          row.dataset.slug,
          row.getBoundingClientRect().top > 60 && row.getBoundingClientRect().bottom < innerHeight,
        ]),
      );
  const settle = () =>
    page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30)))),
    );
  await box.fill('no such metric');
  assert.equal(await status.innerText(), 'no metric is called that');
  assert.equal(await page.locator('table.metrics tr[data-slug]').count(), 0);
  assert.equal(await page.locator('section.block').count(), 0);
  await box.fill('fabric-read');
  await settle();
  const slugs = await page
    .locator('table.metrics tr[data-slug]')
    .evaluateAll((rows) => rows.map((row) => row.dataset.slug));
  assert.ok(slugs.length > 3 && slugs.every((slug) => slug.includes('fabric-read')));
  const expected = document.tables
    .flatMap((table) => table.rows)
    .filter(
      (row) => row.slug?.includes('fabric-read') && row.cells.slice(1).some((cell) => typeof cell === 'number'),
    ).length;
  assert.equal(slugs.length, expected);
  assert.equal(await status.innerText(), `1 of ${slugs.length} metrics`);
  assert.deepEqual(await inView(), [[slugs[0], true]]);
  for (let i = 1; i <= slugs.length; ++i) {
    await box.press('Enter');
    assert.deepEqual(await inView(), [[slugs[i % slugs.length], true]]);
  }
  await box.press('Shift+Enter');
  assert.deepEqual(await inView(), [[slugs.at(-1), true]]);
  // Metrics without a value are told apart from none.
  const missing = document.not_computable.find((entry) => entry.slug === 'ta-address-fifo-full');
  await box.fill(missing.slug);
  await settle();
  assert.match(await status.innerText(), /^(one metric, without a value|\d+ metrics, without values) in this run/);
  await page.locator('.found button').click();
  await settle();
  assert.ok((await page.locator(`tr[data-slug="${missing.slug}"]`).count()) > 0);
  await box.fill('');
  assert.equal(await status.count(), 0);
  await close();
});

test('the memory chart as a table has units, those of the command line', async () => {
  const metrics = new Map(
    (await json('-p', synth)).tables.find((table) => table.id === '3.1').rows.map((row) => [row.id, row]),
  );
  const listed = new Map(
    (await analyze('-p', synth, '-b', '3', '--output-format', 'csv'))
      .split('\n')
      .map((line) => [line.split(',')[1], line]),
  );
  const { page, close } = await open(await html('-p', synth));
  assert.deepEqual(await page.locator('table[data-table="3.1"] th').allTextContents(), [
    'id',
    'Metric',
    'Value',
    'Unit',
  ]);
  const units = await page
    .locator('table[data-table="3.1"] tbody tr')
    .evaluateAll((rows) => rows.map((row) => [row.dataset.id, row.cells[3].textContent]));
  assert.ok(units.length > 40 && units.every(([id]) => metrics.has(id)));
  const of = Object.fromEntries(units.map(([id, unit]) => [metrics.get(id).slug, unit]));
  assert.equal(of['chart-l2-hit-rate'], 'pct');
  assert.match(of['chart-vl1d-latency'], /cycles/i);
  assert.match(of['chart-l2-reads'], /per kernel/);
  assert.ok(units.filter(([, unit]) => unit !== '').length > 35, JSON.stringify(units));
  assert.ok(listed.size > 10);
  await page.click('button[data-norm="per_wave"]');
  assert.match(await page.locator('tr[data-slug="chart-l2-reads"] td.unit').first().innerText(), /per wave/);
  await close();
});

test('the roofline names its points and shows the roof that binds each', async () => {
  const document = await json('-p', synth);
  const { page, close } = await open(await html('-p', synth));
  const names = { hbm: 'HBM', l2: 'L2', l1: 'vL1D', lds: 'LDS', valu: 'VALU', mfma: 'MFMA' };
  const table = await page
    .locator('table[data-table="roofline"] tbody tr')
    .evaluateAll((rows) =>
      rows.map((row) => [row.dataset.kernel, ...[...row.cells].map((cell) => [cell.textContent.trim(), cell.title])]),
    );
  assert.equal(table.length, document.roofline.kernels.length);
  for (const of of document.roofline.kernels) {
    const row = table.find((each) => each[0] === of.kernel);
    const bound = of.bounds[of.type] ?? Object.values(of.bounds)[0];
    assert.ok(row[6][0].startsWith(names[bound.roof]), `${row[6][0]} for ${bound.roof}`);
    assert.ok(Math.abs(Number(row[7][1]) - bound.attainable) <= 1e-9 * bound.attainable);
    assert.ok(Math.abs(Number(row[8][1]) - bound.reached) <= 1e-9 * bound.reached);
    assert.equal(row[8][0], `${bound.reached.toFixed(1)} %`);
    assert.ok(Math.abs(Number(row[4][1]) - of.performance) <= 1e-9 * of.performance);
  }
  // A line leads from each kernel to its roof, which is drawn thicker.
  const drawn = await page.locator('svg[data-chart="roofline"]').evaluate((svg) => ({
    risers: [...svg.querySelectorAll('.riser')].map((line) => ({
      ...line.dataset,
      x: line.x1.baseVal.value,
      from: line.y1.baseVal.value,
      to: line.y2.baseVal.value,
    })),
    points: [...svg.querySelectorAll('circle.point')].map((node) => ({
      ...node.dataset,
      cx: node.cx.baseVal.value,
      cy: node.cy.baseVal.value,
    })),
    binding: [...svg.querySelectorAll('.roof.binds')].map((line) => line.dataset.roof),
    labels: [...svg.querySelectorAll('.pointlabel')].map((text) => {
      const box = text.getBBox();
      return { of: text.dataset.of, text: text.textContent, x: box.x, y: box.y, width: box.width, height: box.height };
    }),
  }));
  assert.equal(drawn.risers.length, document.roofline.kernels.length);
  for (const riser of drawn.risers) {
    const of = document.roofline.kernels.find((each) => each.kernel === riser.kernel);
    const bound = of.bounds[of.type] ?? Object.values(of.bounds)[0];
    assert.equal(riser.binds, bound.roof);
    assert.ok(drawn.binding.includes(bound.roof), bound.roof);
    assert.ok(
      drawn.points.some(
        (point) =>
          point.kernel === riser.kernel &&
          Math.abs(point.cx - riser.x) < 1e-6 &&
          Math.abs(point.cy - riser.from) < 1e-6,
      ),
    );
    const decades = Math.log10(bound.attainable / of.performance);
    assert.ok(
      Math.abs(riser.to - riser.from) < 1 === Math.abs(decades) < 0.005 ||
        Math.sign(riser.from - riser.to) === Math.sign(decades),
    );
  }
  assert.ok(drawn.labels.length >= 3, `${drawn.labels.length} labels`);
  const ids = document.tables.find((each) => each.id === '0.1').rows.map((row) => row.cells[0]);
  for (const label of drawn.labels) assert.equal(Number(label.text.split(' ')[0]), ids.indexOf(label.of), label.text);
  for (const [i, a] of drawn.labels.entries())
    for (const b of drawn.labels.slice(i + 1))
      assert.ok(
        a.x + a.width <= b.x + 1 || b.x + b.width <= a.x + 1 || a.y + a.height <= b.y + 1 || b.y + b.height <= a.y + 1,
        `${a.text} lies over ${b.text}`,
      );
  await close();
});

test('under the name of rocprof-compute the page has the findings, too', async () => {
  const link = path.join(folder, 'rocprof-compute');
  symlinkSync(tacho, link);
  const file = path.join(folder, 'upstream.html');
  execFileSync(link, ['analyze', '-p', vcopy, '--output-format', 'html', '--output-name', file]);
  const { page, close } = await open(file);
  const shown = await page.locator('[data-finding]').evaluateAll((all) => all.map((each) => each.dataset.finding));
  assert.deepEqual(
    shown,
    (await json('-p', vcopy)).findings.slice(0, shown.length).map((finding) => finding.slug),
  );
  assert.ok(shown.length > 0);
  await close();
});

test('colours, paper and small screens', async () => {
  const file = await html('-p', vcopy);
  const { page, close } = await open(file, { colorScheme: 'dark' });
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await back(), 'rgb(21, 24, 28)');
  await page.selectOption('select[aria-label="colours"]', 'light');
  assert.equal(await back(), 'rgb(255, 255, 255)');
  await page.selectOption('select[aria-label="colours"]', 'dark');
  await page.emulateMedia({ media: 'print' });
  assert.equal(await back(), 'rgb(255, 255, 255)');
  assert.equal(await page.locator('nav').isVisible(), false);
  assert.equal(await page.locator('.filters').isVisible(), false);
  assert.ok((await page.pdf({ format: 'A4' })).length > 50_000);
  await page.emulateMedia({ media: 'screen' });
  for (const width of [1600, 1400, 1100, 950, 760, 400]) {
    await page.setViewportSize({ width, height: 800 });
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `at ${width}: ${over} pixels too wide`);
    // The contents are there at any width, and lead where they say.
    const link = page.locator('nav a[href="#roofline"]');
    await link.scrollIntoViewIfNeeded();
    await link.click();
    const top = await page.locator('#roofline').evaluate((section) => section.getBoundingClientRect().top);
    assert.ok(top >= 20 && top < 160, `at ${width}: the roofline lies at ${top}`);
    assert.ok(await page.locator('nav').isVisible());
    const nav = await page
      .locator('nav')
      .evaluate((each) => [each.getBoundingClientRect().bottom, each.getBoundingClientRect().width]);
    assert.ok(width > 1100 || nav[0] <= top + 1, `at ${width}: the contents cover the heading`);
  }
  await close();
});

test('a run too large for a page keeps kernels and normalisations', async () => {
  const large = path.join(folder, 'large');
  mkdirSync(large);
  const info = readFileSync(path.join(synth, 'sysinfo.csv'));
  writeFileSync(path.join(large, 'sysinfo.csv'), info);
  const lines = readFileSync(path.join(synth, 'pmc_perf.csv'), 'utf8').trimEnd().split('\n');
  const rows = [];
  for (let i = 0; i < 8000; ++i) rows.push(lines[1 + (i % (lines.length - 1))].replace(/^\d+/, String(i)));
  writeFileSync(path.join(large, 'pmc_perf.csv'), [lines[0], ...rows].join('\n') + '\n');
  const { page, close } = await open(await html('-p', large, '--no-advice'));
  assert.match(await page.locator('.warning').first().textContent(), /too many counter values/);
  assert.equal(await page.locator('input[aria-label="dispatches"]').count(), 0);
  for (const [choice, args] of [
    [{ normalisation: 'per_wave' }, ['-n', 'per_wave']],
    [{ kernels: [1], time: 'us' }, ['-k', '1', '-n', 'per_wave', '-t', 'us']],
  ]) {
    await choose(page, choice);
    compareTables(await json('-p', large, '--no-advice', ...args), await shownTables(page));
  }
  await close();
});

// What an NVIDIA run leaves, with known counts: a copy without FLOPs (constants loaded by HFMA2 are none), a loop of FMAs, a
// BF16 product above its roof.
function h200() {
  const into = path.join(folder, 'h200');
  mkdirSync(into, { recursive: true });
  writeFileSync(
    path.join(into, 'sysinfo.csv'),
    'workload_name,gpu_arch,gpu_model,cu_per_gpu,wave_size,max_sclk\nknown,sm_90,NVIDIA H200,132,32,1980\n',
  );
  const counters = ['ffma', 'fadd', 'fmul', 'dfma', 'dadd', 'dmul', 'hfma', 'hadd', 'hmul'].map(
    (kind) => `smsp__sass_thread_inst_executed_op_${kind}_pred_on.sum`,
  );
  const tensor = ['src_fp16', 'src_fp8', 'src_bf16_dst_fp32', 'src_tf32_dst_fp32', 'src_fp64'].map(
    (kind) => `sm__ops_path_tensor_${kind}.sum`,
  );
  const rest = [
    'smsp__sass_thread_inst_executed_pred_on.sum',
    'l1tex__t_bytes.sum',
    'lts__t_sectors_srcunit_tex.sum',
    'dram__bytes.sum',
    'l1tex__data_pipe_lsu_wavefronts_mem_shared.sum',
  ];
  const header = [
    'Dispatch_ID',
    'Kernel_Name',
    'GPU_ID',
    'Grid_Size',
    'Workgroup_Size',
    'Start_Timestamp',
    'End_Timestamp',
    ...counters,
    ...tensor,
    ...rest,
  ];
  const threads = 1 << 20;
  const row = (name, ns, values) =>
    header
      .slice(7)
      .map((counter) => values[counter] ?? 0)
      .join(',')
      .replace(/^/, `${name},0,${threads},256,0,${ns},`);
  const bytes = {
    'l1tex__t_bytes.sum': 16 * threads,
    'lts__t_sectors_srcunit_tex.sum': (12 * threads) / 32,
    'dram__bytes.sum': 8 * threads,
    'smsp__sass_thread_inst_executed_pred_on.sum': 100 * threads,
  };
  const rows = [
    row('copy_kernel', 2000, { ...bytes, [counters[6]]: 2 * threads }),
    row('fma_kernel', 4000, { ...bytes, [counters[0]]: 64 * threads, [counters[6]]: 2 * threads }),
    row('nvjet_bf16', 1000, { ...bytes, [tensor[2]]: 850000 * 1000 }),
  ].map((text, i) => `${i},${text}`);
  writeFileSync(path.join(into, 'pmc_perf.csv'), `${header.join(',')}\n${rows.join('\n')}\n`);
  writeFileSync(
    path.join(into, 'roofline.csv'),
    'device,HBMBw,L2Bw,L1Bw,LDSBw,FP32Flops,FP64Flops,MFMABF16Flops,DeviceName,Driver,Backend,Measured\n0,4500,9500,32700,33000,65700,33300,766000,NVIDIA H200,580.1,cuda,2026-01-01T00:00:00Z\n',
  );
  return into;
}

const square = (name, x, y, svg) => {
  const number = (key) => svg.dataset[key].split(' ').map(Number);
  const [left, right, bottom, top] = number('range');
  const [x0, x1, y0, y1] = number('area');
  return [
    x0 + ((Math.log10(x) - left) / (right - left)) * (x1 - x0),
    y1 - ((Math.log10(y) - bottom) / (top - bottom)) * (y1 - y0),
  ];
};

test('the roofline as an SVG file: points within a pixel, texts equal to the JSON, light and dark', async () => {
  const known = h200();
  const file = path.join(folder, 'roof.svg');
  await analyze('-p', synth, '-p', known, '--output-format', 'svg', '--output-name', file);
  const documents = [await json('-p', synth), await json('-p', known)];
  const text = readFileSync(file, 'utf8');
  assert.ok(!/<script|href=|url\((?!#)/.test(text), 'needs nothing else');
  const { page, close } = await openPlain(file);
  const found = await page.evaluate(() => {
    const svg = document.querySelector('svg');
    return {
      svg: { dataset: { range: svg.dataset.range, area: svg.dataset.area } },
      points: [...svg.querySelectorAll('.point')].map((node) => {
        const box = node.getBBox();
        const at = node.getAttribute('d');
        const centre =
          at === null
            ? [node.cx.baseVal.value, node.cy.baseVal.value]
            : at.slice(1).split('m')[0].split(' ').map(Number);
        return { ...node.dataset, centre, title: node.querySelector('title').textContent, width: box.width };
      }),
      back: getComputedStyle(svg.querySelector('rect')).fill,
    };
  });
  let checked = 0;
  documents.forEach((of, run) => {
    for (const kernel of of.roofline.kernels)
      for (const level of ['hbm', 'l2', 'l1']) {
        const none = kernel.performance === 0;
        const [x, y] = none
          ? [10 ** Number(found.svg.dataset.range.split(' ')[0]), kernel.bandwidth[level]]
          : [kernel.intensity[level], kernel.performance];
        const point = found.points.find(
          (each) => each.run === String(run) && each.level === level && each.kernel === kernel.kernel,
        );
        assert.ok(point, `${kernel.kernel} ${level}`);
        const [px, py] = square(kernel.kernel, x, none ? y * x : y, found.svg);
        assert.ok(
          Math.abs(point.centre[0] - px) < 1 && Math.abs(point.centre[1] - py) < 1,
          `${kernel.kernel} ${level}: ${point.centre} instead of ${px} ${py}`,
        );
        assert.equal(Number(point.y), y);
        assert.ok(
          point.title.includes(none ? `${y.toFixed(2)} GB/s at` : `AI ${x.toFixed(2)} FLOP/byte at`),
          point.title,
        );
        assert.ok(
          point.title.includes(none ? 'no FLOPs' : `${y.toFixed(2)} GFLOP/s, mostly ${kernel.type}`),
          point.title,
        );
        const bound = none ? kernel.bounds.FP32 : kernel.bounds[kernel.type];
        assert.ok(
          point.title.includes(
            `: ${bound.reached.toFixed(1)} % of ${bound.attainable.toFixed(2)} ${none ? 'GB/s' : `GFLOP/s (${kernel.type})`}`,
          ),
          point.title,
        );
        ++checked;
      }
  });
  assert.equal(found.points.length, checked);
  assert.equal(found.back, 'rgb(255, 255, 255)');
  assert.match(text, /2 points lie above a roof\. A roof is what a benchmark sustains/);
  await close();
  const dark = await openPlain(file, { colorScheme: 'dark' });
  assert.equal(
    await dark.page.evaluate(() => getComputedStyle(document.querySelector('rect')).fill),
    'rgb(21, 24, 28)',
  );
  await dark.page.emulateMedia({ media: 'print', colorScheme: 'light' });
  assert.equal(
    await dark.page.evaluate(() => getComputedStyle(document.querySelector('rect')).fill),
    'rgb(255, 255, 255)',
  );
  await dark.close();
});

test('MI200 beside H200 on one page: kernels without FLOPs on the axis, the roofs of each type, ranges of the axes', async () => {
  const known = h200();
  const document = await json('-p', known);
  const { page, close } = await open(await html('-p', synth, '-p', known));
  const chart = page.locator('svg[data-chart="roofline"]');
  const copy = document.roofline.kernels.find((kernel) => kernel.kernel === 'copy_kernel');
  assert.equal(copy.performance, 0, 'constants are no FLOPs');
  const of = (kernel, level) => chart.locator(`.point[data-run="1"][data-kernel="${kernel}"][data-level="${level}"]`);
  const place = await of('copy_kernel', 'hbm').evaluate((node) => [
    node.x.baseVal.value + node.width.baseVal.value / 2,
    node.y.baseVal.value + node.height.baseVal.value / 2,
    node.getAttribute('class'),
  ]);
  assert.ok(place[2].includes('on-axis'));
  const axis = await chart
    .locator('line.grid:not(.minor)')
    .first()
    .evaluate((line) => line.x1.baseVal.value);
  assert.ok(Math.abs(place[0] - axis) < 1);
  await of('copy_kernel', 'hbm').hover();
  let tip = await page.locator('.tip').innerText();
  assert.ok(
    tip.includes(
      `${copy.bandwidth.hbm.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })} GB/s at DRAM`,
    ),
    tip,
  );
  assert.ok(tip.includes(`bound by DRAM: ${copy.bounds.FP32.reached.toFixed(1)} % of 4,500.00 GB/s`), tip);
  const product = document.roofline.kernels.find((kernel) => kernel.kernel === 'nvjet_bf16');
  assert.equal(product.type, 'BF16');
  assert.deepEqual(Object.keys(product.flops), ['matrix BF16']);
  await of('nvjet_bf16', 'l1').hover();
  tip = await page.locator('.tip').innerText();
  assert.ok(tip.includes(`${product.bounds.BF16.reached.toFixed(1)} % of`) && tip.includes('no limit of physics'), tip);
  assert.match(await page.locator('[data-note="above"]').innerText(), /^2 points lie above a roof/);
  assert.ok(
    (await chart.locator('line[data-run="1"][data-type="BF16"]').count()) === 1,
    'the roof of the type that a kernel of the run uses',
  );
  const range = () => chart.getAttribute('data-range');
  const whole = page.locator('select[aria-label="range of the axes"]');
  await whole.selectOption('whole');
  assert.match(await range(), /^-2 3 /);
  await whole.selectOption('points');
  const [left, right] = (await range()).split(' ').map(Number);
  const xs = [...(await json('-p', synth)).roofline.kernels, ...document.roofline.kernels]
    .filter((k) => k.performance > 0)
    .flatMap((k) => ['hbm', 'l2', 'l1', 'lds'].map((level) => k.intensity[level]).filter((x) => x > 0));
  assert.deepEqual([left, right], [Math.floor(Math.log10(Math.min(...xs))), Math.ceil(Math.log10(Math.max(...xs)))]);
  await page.emulateMedia({ media: 'print' });
  assert.equal(await page.locator('#roofline .tools').isVisible(), false);
  assert.equal(await chart.isVisible(), true);
  await close();
});

test('--gui serves the page on this machine to who has the token, until Ctrl-C', async () => {
  const server = spawn(tacho, ['analyze', '-p', vcopy, '--random-port', '--gui'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const url = await new Promise((done, failed) => {
    server.stdout.once('data', (data) => done(String(data).trim()));
    server.once('exit', (code) => failed(new Error(`exit ${code}`)));
  });
  server.removeAllListeners('exit');
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/\?token=[0-9a-f]{32}$/);
  assert.equal((await fetch(url.replace(/token=.*/, ''))).status, 403);
  const { page, close } = await open(url);
  compareTables(await json('-p', vcopy), await shownTables(page));
  await close();
  const ended = new Promise((done) => server.once('exit', (code, signal) => done([code, signal])));
  server.kill('SIGINT');
  assert.deepEqual(await ended, [0, null]);
});
