// The views of ranks and of counters in a browser, served and self-contained: every number is what tacho ranks and tacho analyze
// say, places in the timeline are the right ones, and where there is nothing to see a sentence says why.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { choose, compareTables, shownTables } from '../web/harness.mjs';
import { folder, open, settled, source, start, stop } from './harness.mjs';
import { data, query, run, serve, tacho, write } from './program.mjs';

before(start);
after(stop);

const ranks4 = path.join(data, 'ranks4');
const synth = path.join(data, 'workloads/synth_a/MI200');
const exact = (text) => Number(/^([0-9,.]+) ns$/.exec(text)[1].replaceAll(',', ''));
const rows = (page, table) =>
  page
    .locator(`table[data-table="${table}"] tbody tr`)
    .evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => [cell.textContent, cell.title])));

test('ranks: sentences, tables, heat map and arrivals are those of tacho ranks', async () => {
  const says = JSON.parse(await run('ranks', ranks4, '--output-format', 'json', '--arrivals'));
  const text = (await run('ranks', ranks4)).replace(/\s+/g, ' ');
  for (const address of [await serve(ranks4), await write(ranks4)]) {
    const { page, close } = await open(address, { hash: 'view=ranks' });
    await page.locator('.heat canvas').waitFor();
    const sentences = await page.locator('.ranksview > section').first().locator('p').allTextContents();
    const written = [...says.sentences, says.clocks.text];
    assert.deepEqual(sentences, written);
    for (const sentence of written) assert.ok(text.includes(sentence), sentence);
    assert.equal(sentences.length, 4);

    // Time of the ranks.
    (await rows(page, 'ranks')).forEach((row, i) => {
      const of = says.ranks[i];
      assert.equal(row[0][0].trim(), String(of.rank));
      assert.deepEqual(
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map((c) => exact(row[c][1])),
        [
          'span',
          'busy',
          'compute',
          'communication',
          'exposed_communication',
          'overlap',
          'exposed_copies',
          'idle',
          'launch_bound',
          'waited',
          'caused',
        ].map((each) => of[`${each}_ns`]),
      );
      assert.equal(row[12][0], String(of.last_in));
    });
    assert.equal((await rows(page, 'ranks')).length, 4);
    // Steps.
    const steps = await rows(page, 'steps');
    assert.deepEqual(
      steps.map((row) => [
        Number(row[0][0]),
        exact(row[1][1]),
        Number(row[2][0]),
        row[3][0],
        exact(row[4][1]),
        exact(row[5][1]),
        row[6][0],
        row[7][0],
      ]),
      says.steps.map((of) => [
        of.step,
        of.length_ns,
        of.last_rank,
        `${of.last_in}/${of.collectives}`,
        of.late_ns,
        of.waited_ns,
        `${of.imbalance_percent.toFixed(1)} %`,
        of.cause.text,
      ]),
    );
    // Collectives, the one waited for longest first; each one's arrivals.
    const sorted = [...says.collectives].sort((a, b) => b.waited_ns - a.waited_ns);
    const listed = await rows(page, 'collectives');
    assert.deepEqual(
      listed.map((row) => [
        row[0][0].trim(),
        Number(row[1][0]),
        Number(row[2][0]),
        exact(row[3][1]),
        exact(row[4][1]),
        exact(row[5][1]),
        row[6][0],
      ]),
      sorted.map((of) => [
        `${of.operation} ${of.number}`,
        of.step,
        of.last_rank,
        of.spread_ns,
        of.waited_ns,
        of.transfer_ns,
        of.cause.text,
      ]),
    );
    for (const of of [sorted[0], sorted[1], sorted[77]]) {
      await page.locator(`tr[data-index="${of.index}"]`).click();
      await page.locator(`.arrivals[data-collective="${of.index}"]`).waitFor();
      const drawn = await page
        .locator('.arrivals g')
        .evaluateAll((all) =>
          all.map((each) => [each.dataset.rank, each.dataset.after, each.dataset.waited, each.dataset.end].map(Number)),
        );
      assert.deepEqual(drawn, of.arrivals);
      // A rank that comes later stands further right, and its bar of waiting is shorter.
      const places = await page
        .locator('.arrivals g')
        .evaluateAll((all) =>
          all.map((each) => [
            Number(each.dataset.after),
            each.querySelector('circle').cx.baseVal.value,
            each.querySelector('.wait').width.baseVal.value,
          ]),
        );
      const scale = (places.at(-1)[1] - places[0][1]) / (places.at(-1)[0] - places[0][0]);
      for (const [afterFirst, x, wait] of places) {
        assert.ok(Math.abs(x - places[0][1] - (afterFirst - places[0][0]) * scale) < 0.5, `${afterFirst} at ${x}`);
        assert.ok(Math.abs(wait - (of.spread_ns - afterFirst) * scale) < 0.5, `${wait}`);
      }
      const sentence = (await page.locator('.arrivals .sentence').innerText()).replace(/\s+/g, ' ');
      assert.ok(
        sentence.includes(`rank ${of.last_rank} came last`) && sentence.includes(`Cause: ${of.cause.text}.`),
        sentence,
      );
    }
    // Bytes.
    const bytes = await page
      .locator('td[data-bytes]')
      .evaluateAll((all) => all.map((each) => [each.title, Number(each.dataset.bytes)]));
    assert.deepEqual(
      bytes,
      says.bytes.map((of) => [`${of.bytes.toLocaleString('en-US')} B from rank ${of.from} to rank ${of.to}`, of.bytes]),
    );

    // Every cell of the heat map, by what a pointer over it reads.
    const canvas = page.locator('.heat canvas');
    const [left, top, wide, high] = (await canvas.getAttribute('data-cell')).split(' ').map(Number);
    for (const [r, rank] of says.ranks.entries())
      for (const [s, step] of rank.steps.entries()) {
        if ((r + s) % 3 !== 0 && step.step !== 5) continue;
        await canvas.hover({ position: { x: left + (s + 0.5) * wide, y: top + (r + 0.5) * high } });
        assert.equal(await page.locator('.heat .tip b').textContent(), `rank ${rank.rank}, step ${step.step}`);
        const facts = Object.fromEntries(
          await page
            .locator('.heat .tip dd')
            .evaluateAll((all) => all.map((each) => [each.dataset.fact, Number(each.dataset.exact)])),
        );
        assert.deepEqual(facts, {
          late: step.late_ns,
          waited: step.waited_ns,
          'made others wait': step.caused_ns,
          'exposed communication': step.exposed_communication_ns,
          compute: step.compute_ns,
          idle: step.idle_ns,
          busy: step.busy_ns,
          communication: step.communication_ns,
          'exposed copies': step.exposed_copies_ns,
          'idle, not launched': step.launch_bound_ns,
        });
      }
    // The strongest colour is where most is: rank 2 in step 5 is latest; it also computes most.
    const strongest = () =>
      page.evaluate(
        ([x0, y0, w, h]) => {
          const each = document.querySelector('.heat canvas');
          const scale = each.width / each.clientWidth;
          const context = each.getContext('2d');
          const blank = context.getImageData(each.width - 1, each.height - 1, 1, 1).data;
          let best = [-1, 0, 0];
          for (let r = 0; r < 4; ++r)
            for (let s = 0; s < 10; ++s) {
              const [a, b, c] = context.getImageData(
                Math.round((x0 + s * w + 3) * scale),
                Math.round((y0 + r * h + 3) * scale),
                1,
                1,
              ).data;
              const apart = Math.max(a, b, c) - Math.min(a, b, c);
              if (apart > best[0]) best = [apart, r, s];
            }
          return [best[1], best[2], blank.length];
        },
        [left, top, wide, high],
      );
    assert.deepEqual((await strongest()).slice(0, 2), [2, 5]);
    await page.getByRole('button', { name: 'made others wait' }).click();
    const caused = says.ranks
      .flatMap((rank, r) => rank.steps.map((step, s) => [step.caused_ns, r, s]))
      .sort((a, b) => b[0] - a[0])[0];
    assert.deepEqual((await strongest()).slice(0, 2), caused.slice(1));

    // A click on a cell: the timeline at that rank and step, with what that rank ran in it.
    await canvas.click({ position: { x: left + 5.5 * wide, y: top + 2.5 * high } });
    await settled(page);
    const state = await page.evaluate(() => {
      const { app } = window.tacho;
      return {
        view: app.view,
        from: app.from,
        to: app.to,
        rank: app.rank,
        t0: app.current.t0,
        hash: location.hash,
        open: app.shown.rows.filter((row) => row.track.rank === 2 && row.what === 'slices').length,
        collective: app.collective,
      };
    });
    assert.equal(state.view, 'timeline');
    assert.equal(state.rank, 2);
    assert.ok(state.open > 0, 'the rank is open');
    const step5 = says.ranks[2].steps[5];
    const margin = (state.to - state.from - step5.span_ns) / 2;
    assert.ok(margin > 0 && margin < step5.span_ns * 0.05, `${state.from} to ${state.to} for ${step5.span_ns}`);
    // The collective waited for most is chosen, its kernel selected, and the row it lies in is in view.
    const longest = says.collectives
      .filter((of) => of.step === 5 && of.arrivals.some((each) => each[0] === 2))
      .sort((x, y) => y.waited_ns - x.waited_ns)[0];
    assert.equal(state.collective, longest.index);
    await page.waitForFunction(() => window.tacho.app.slice !== null);
    await settled(page);
    const marked = await page.evaluate(() => {
      const { app, timeline } = window.tacho;
      const row = app.shown.rows.find((each) => each.track.id === app.slice.track);
      const top = row.top + row.first + app.slice.lane * row.lane - timeline().scroll;
      return { ...app.slice, rank: row.track.rank, top, bottom: top + row.lane, height: timeline().height };
    });
    const [, after, , end] = longest.arrivals.find((each) => each[0] === 2);
    const first = await page.evaluate(
      async (index) => (await window.tacho.app.extra('ranks')).collectives.find((of) => of.index === index),
      longest.index,
    );
    assert.equal(marked.rank, 2);
    assert.match(marked.name, /nccl/i);
    assert.equal(marked.start, first.first_start_ns + after);
    assert.equal(marked.start + marked.duration, first.first_start_ns + end);
    assert.ok(marked.top >= 0 && marked.bottom <= marked.height, JSON.stringify(marked));
    // The address says all of it, and Back leads to the ranks.
    await page.waitForFunction(() => location.hash === `#${window.tacho.app.hash()}`);
    const hash = await page.evaluate(() => location.hash);
    for (const part of ['view=timeline', 'rank=2', 'step=5', `collective=${longest.index}`, 'sel='])
      assert.ok(hash.includes(part), hash);
    await page.goBack();
    await page.locator('.heat canvas').waitFor();
    await close();
  }
});

test('ranks: moments stand where the kernels of the timeline do, and the address brings them back', async () => {
  const { page, close } = await open(await serve(ranks4), {
    hash: 'view=ranks&step=5&rank=2&heat=compute&collective=65',
  });
  await page.locator('.arrivals[data-collective="65"]').waitFor();
  assert.equal(await page.locator('.segments button.on', { hasText: 'compute' }).count(), 1);
  assert.equal(await page.locator('tr.on[data-step="5"]').count(), 1);
  assert.equal(await page.locator('tr.on[data-rank="2"]').count(), 1);
  assert.equal((await rows(page, 'collectives')).length, 13);
  const found = await page.evaluate(async () => {
    const { app } = window.tacho;
    const job = await app.extra('ranks');
    const out = [];
    for (const each of [job.collectives[0], job.collectives[65], job.collectives[129]])
      for (const [rank, afterFirst, , end] of each.arrivals) {
        const start = BigInt(app.current.t0) + BigInt(each.first_start_ns + afterFirst);
        const sql = `SELECT count(*) FROM tacho.dispatch WHERE start = ${start} AND "end" = ${BigInt(app.current.t0) + BigInt(each.first_start_ns + end)} AND name LIKE 'nccl%'`;
        out.push([rank, (await app.source.query(0, sql)).rows[0][0]]);
      }
    const step = job.ranks[2].steps[5];
    const tables = await app.source.span(0, step.begin_ns, step.end_ns);
    return { out, kernels: tables.kernels.length };
  });
  assert.equal(found.out.length, 12);
  for (const [rank, count] of found.out) assert.ok(count >= 1, `rank ${rank}: no kernel of NCCL starts and ends there`);
  assert.ok(found.kernels > 3);
  await close();
});

test('ranks: late messages with what their senders did, and bandwidth against the peak', async (t) => {
  const says = JSON.parse(await run('ranks', ranks4, '--output-format', 'json'));
  const first = await open(await write(ranks4), { hash: 'view=ranks' });
  await first.page.locator('table[data-table="kinds"]').waitFor();
  assert.deepEqual(
    (await rows(first.page, 'kinds')).map((row) => row.at(-1)),
    says.kinds.map((of) => [`${((of.bus_gb_s / of.peak_gb_s) * 100).toFixed(1)} %`, of.peak]),
  );
  assert.ok(
    (await first.page.locator('.ranksview').innerText()).includes(
      'Peak: 450 GB/s, what NVLink 4 of NVIDIA H200 carries in one direction, if the ranks are on one host.',
    ),
  );
  await first.close();

  if (spawnSync('mpicc.openmpi', ['--version']).error !== undefined)
    return t.skip('mpicc.openmpi is not installed (Debian package libopenmpi-dev)');
  const job = path.join(folder, 'late');
  mkdirSync(job, { recursive: true });
  const program = path.join(folder, 'stencil');
  execFileSync('mpicc.openmpi', [
    '-w',
    '-O1',
    `-I${source}/include`,
    `${source}/tests/e2e/targets/mpi/stencil.c`,
    '-o',
    program,
    '-lOpenCL',
    '-ldl',
    '-lpthread',
  ]);
  execFileSync(
    'mpirun.openmpi',
    [
      '--allow-run-as-root',
      '--oversubscribe',
      '-n',
      '4',
      tacho,
      'trace',
      '-q',
      '-o',
      't.tacho',
      '--',
      program,
      '16',
      'message',
      '1',
      '7',
      '900',
    ],
    {
      cwd: job,
      stdio: 'pipe',
      env: { ...process.env, POCL_MAX_PTHREAD_COUNT: '1', OMPI_MCA_mpi_yield_when_idle: '1' },
    },
  );
  const told = JSON.parse(await run('ranks', job, '--output-format', 'json'));
  const { page, close } = await open(await serve(job), { hash: 'view=ranks' });
  await page.locator('table[data-table="late"]').waitFor();
  const listed = await rows(page, 'late');
  assert.deepEqual(
    listed.map((row) => [Number(row[0][0]), Number(row[1][0]), exact(row[2][1]), row[6][0]]),
    told.late_messages.slice(0, listed.length).map((of) => [of.from, of.to, of.waited_ns, of.meanwhile?.text ?? '—']),
  );
  assert.deepEqual(
    [listed[0][0][0], listed[0][1][0], listed[0][6][0]],
    ['1', '2', 'its own code on the host, in pack'],
  );
  assert.match(
    await page.locator('.ranksview').innerText(),
    /Peak: unknown; the traces do not tell what MPI sends over\./,
  );
  assert.equal(await page.locator('table[data-table="kinds"] th', { hasText: 'Of peak' }).count(), 0);
  await close();
});

test('ranks: one rank shows its times, and ranks without collectives a sentence', async () => {
  const alone = path.join(ranks4, 'kineto_rank0.json.gz');
  const says = JSON.parse(await run('ranks', alone, '--output-format', 'json'));
  const { page, close } = await open(await write(alone), { hash: 'view=ranks' });
  await page.locator('.heat canvas').waitFor();
  assert.match(
    await page.locator('.ranksview').innerText(),
    /holds one rank only: give the files of all ranks to see which rank waits for which/,
  );
  assert.equal(await page.getByRole('button', { name: 'made others wait' }).count(), 0);
  assert.equal(exact((await rows(page, 'ranks'))[0][3][1]), says.ranks[0].compute_ns);
  assert.equal(await page.locator('.arrivals').count(), 0);
  await close();

  const without = path.join(folder, 'without');
  mkdirSync(without, { recursive: true });
  for (const rank of [0, 1])
    writeFileSync(
      path.join(without, `rank${rank}.json`),
      JSON.stringify({
        distributedInfo: { backend: 'nccl', rank, world_size: 2 },
        traceEvents: [1, 2, 3].map((i) => ({
          ph: 'X',
          cat: 'kernel',
          name: 'gemm',
          pid: 0,
          tid: 7,
          ts: 1000 * i,
          dur: 500,
          args: { device: 0, stream: 7, correlation: i },
        })),
      }),
    );
  for (const [address, allow] of [
    [await serve(without), ['400']],
    [await write(without), []],
  ]) {
    const opened = await open(address, { hash: 'view=ranks', allow });
    await opened.page.locator('.nothing').waitFor();
    assert.match(
      await opened.page.locator('.nothing').innerText(),
      /no collective among the 6 kernels of 2 ranks.*nccl/s,
    );
    await opened.close();
  }
  // Nothing about ranks: no tab.
  const none = await open(await write(path.join(data, 'traces/kineto_h100_qwen1.5-0.5b.json.gz')), {
    hash: 'view=ranks',
  });
  assert.ok(!(await none.page.locator('nav[aria-label="views"] button').allTextContents()).includes('Ranks'));
  await none.close();
});

test('counters: a profile folder shows the report of tacho analyze in the frame', async () => {
  for (const [workload, ...more] of [
    ['synth_a/MI200'],
    ['synth_a/MI300X_A1'],
    ['synth_a/MI350'],
    ['vcopy/MI300X_A1_rocpd'],
  ]) {
    const at = path.join(data, 'workloads', workload);
    for (const address of more.length === 0 && workload === 'synth_a/MI200'
      ? [await serve(at), await write(at)]
      : [await write(at)]) {
      const { page, close } = await open(address);
      await page.locator('.report h1').waitFor();
      assert.deepEqual(await page.locator('header nav[aria-label="views"] button').allTextContents(), ['Counters']);
      const document = JSON.parse(await run('analyze', '-p', at, '--output-format', 'json'));
      assert.ok(compareTables(document, await shownTables(page)) > 100);
      await choose(page, { normalisation: 'per_wave', time: 'us', kernels: [0] });
      assert.ok(
        compareTables(
          JSON.parse(
            await run('analyze', '-p', at, '-n', 'per_wave', '-t', 'us', '-k', '0', '--output-format', 'json'),
          ),
          await shownTables(page),
        ) > 100,
      );
      assert.equal((await page.locator('[data-finding]').count()) > 0, document.findings.length > 0);
      for (const chart of ['memory', ...(document.roofline === undefined ? [] : ['roofline'])])
        assert.equal(await page.locator(`svg[data-chart="${chart}"]`).count(), 1, chart);
      // The contents scroll, and leave the address to the page.
      await page.locator('nav[aria-label="contents"] a[href="#block-17"]').click();
      await page.waitForFunction(
        () =>
          Math.abs(
            document.querySelector('.report').shadowRoot.querySelector('#block-17').getBoundingClientRect().top - 136,
          ) < 60,
      );
      assert.match(await page.evaluate(() => location.hash), /^#view=|^$/);
      // A tip stands within the report's own tree, where its styles are.
      await page.locator('svg[data-chart="memory"] g[data-slug] text').first().hover();
      assert.equal(
        await page.evaluate(
          () => getComputedStyle(document.querySelector('.report').shadowRoot.querySelector('.tip')).position,
        ),
        'fixed',
      );
      await close();
    }
  }
});

test('counters: a trace in a profile folder has both, and the kernel chosen is that of the counters', async () => {
  const both = path.join(folder, 'both');
  cpSync(synth, both, { recursive: true });
  const names = JSON.parse(await run('analyze', '-p', synth, '--output-format', 'json')).tables[0].rows.map(
    (row) => row.cells[0],
  );
  writeFileSync(
    path.join(both, 'trace.json'),
    JSON.stringify({
      traceEvents: names.map((name, i) => ({
        ph: 'X',
        cat: 'kernel',
        name,
        pid: 0,
        tid: 7,
        ts: 1000 * (i + 1),
        dur: 500,
        args: { device: 0, stream: 7, correlation: i },
      })),
    }),
  );
  for (const given of [both, path.join(both, 'trace.json')]) {
    const { page, close } = await open(await serve(given), { hash: 'view=kernels' });
    const tabs = await page.locator('header nav[aria-label="views"] button').allTextContents();
    for (const tab of ['Overview', 'Timeline', 'Kernels', 'Counters', 'SQL'])
      assert.ok(tabs.includes(tab), `${tab} among ${tabs}`);
    const k = names.findIndex((name) => name.startsWith('saxpy'));
    await page.locator('.kernels .row', { hasText: 'saxpy' }).click();
    await page.getByRole('button', { name: 'Counters' }).click();
    await page.waitForFunction(
      () =>
        window.tacho.app.analysis !== null &&
        document.querySelector('.report').shadowRoot.querySelectorAll('table[data-table="0.1"] input:checked')
          .length === 1,
    );
    compareTables(
      JSON.parse(await run('analyze', '-p', synth, '-k', String(k), '--output-format', 'json')),
      await shownTables(page),
    );
    await close();
  }
  assert.equal((await query(path.join(both, 'trace.json'), 'SELECT count(*) FROM tacho.dispatch'))[0][0], names.length);
});

test('counters: PC samples are a table of the folder that has them', async () => {
  const sampled = path.join(folder, 'sampled');
  mkdirSync(sampled);
  cpSync(path.join(synth, 'sysinfo.csv'), path.join(sampled, 'sysinfo.csv'));
  writeFileSync(
    path.join(sampled, 'ps_file_kernel_trace.csv'),
    'Kind,Agent_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Start_Timestamp,End_Timestamp\nKERNEL_DISPATCH,4,1,16,"axpy<float, 4>",100,1100\nKERNEL_DISPATCH,4,2,17,copy,2000,2500\n',
  );
  const samples = [
    [10, 1, 'v_add_f32 v0, v1, v2', 'axpy.cpp:12'],
    [20, 1, 'v_add_f32 v0, v1, v2', 'axpy.cpp:12'],
    [30, 1, 's_waitcnt vmcnt(0)', 'axpy.cpp:11'],
    [40, 2, 's_endpgm', 'copy.cpp:3'],
  ];
  writeFileSync(
    path.join(sampled, 'ps_file_pc_sampling_stochastic.csv'),
    [
      'Sample_Timestamp,Dispatch_Id,Instruction,Instruction_Comment,Wave_Issued_Instruction,Stall_Reason',
      ...samples.map(([at, dispatch, instruction, line]) => `${at},${dispatch},"${instruction}",${line},1,`),
    ].join('\n') + '\n',
  );
  const says = JSON.parse(await run('analyze', '-p', sampled, '--output-format', 'json')).tables.find(
    (table) => table.id === '21.1',
  );
  assert.equal(says.rows.length, 3);
  const { page, close } = await open(await write(sampled), { hash: 'view=counters' });
  await page.locator('table[data-table="21.1"]').waitFor();
  const count = says.columns.indexOf('Samples');
  assert.ok(count >= 0, says.columns.join());
  assert.deepEqual(
    (await rows(page, '21.1')).map((row) => [row[0][0], row[count][0]]),
    says.rows.map((row) => [row.cells[0], String(row.cells[count])]),
  );
  // Without text of the source: its lines by number, and a sentence.
  const lines = () =>
    page
      .locator('[data-listing] tr[data-line]')
      .evaluateAll((all) =>
        all.map((row) => [
          row.closest('table').dataset.file,
          Number(row.dataset.line),
          Number(row.dataset.samples ?? 0),
          row.querySelector('.text').textContent,
        ]),
      );
  assert.deepEqual(await lines(), [
    ['axpy.cpp', 11, 1, ''],
    ['axpy.cpp', 12, 2, ''],
    ['copy.cpp', 3, 1, ''],
  ]);
  assert.match(await page.locator('[data-listing]').innerText(), /The folder has no text of these files/);
  await close();

  // With it: every line kept, markup as text; a line chosen leaves its instructions, a kernel chosen its lines.
  writeFileSync(
    path.join(sampled, 'ps_file_sources.csv'),
    'File,Line,Text\naxpy.cpp,10,"int i = 0, j;"\naxpy.cpp,11,"y[i] += <b>a</b>;"\naxpy.cpp,12,}\naxpy.cpp,20,last\n',
  );
  const opened = await open(await serve(sampled), { hash: 'view=counters' });
  const listing = opened.page.locator('[data-listing] tr[data-line]');
  await listing.first().waitFor();
  assert.deepEqual(
    await listing.evaluateAll((all) =>
      all.map((row) => [
        Number(row.dataset.line),
        Number(row.dataset.samples ?? 0),
        row.querySelector('.text').textContent,
      ]),
    ),
    [
      [10, 0, 'int i = 0, j;'],
      [11, 1, 'y[i] += <b>a</b>;'],
      [12, 2, '}'],
      [20, 0, 'last'],
      [3, 1, ''],
    ],
  );
  assert.equal(await opened.page.locator('[data-listing] tr.gap').count(), 1);
  await opened.page.locator('tr[data-line="11"]').click();
  assert.deepEqual(
    (await rows(opened.page, '21.1')).map((row) => row[0][0]),
    ['s_waitcnt vmcnt(0)'],
  );
  await opened.page.locator('tr[data-line="11"]').click();
  await opened.page.locator('table[data-table="0.1"] tbody tr', { hasText: 'copy' }).locator('input').click();
  await opened.page.waitForFunction(
    () => document.querySelector('.report').shadowRoot.querySelectorAll('[data-listing] tr[data-line]').length === 1,
  );
  assert.deepEqual(
    (await rows(opened.page, '21.1')).map((row) => row[0][0]),
    ['s_endpgm'],
  );
  await opened.close();
});

test('counters: several profile folders are compared as tacho analyze does', async () => {
  const other = path.join(folder, 'other');
  cpSync(path.join(data, 'workloads/synth_a/MI300X_A1'), other, { recursive: true });
  const { page, close } = await open(await serve(synth, other));
  await page.locator('.report h1').waitFor();
  const says = JSON.parse(await run('analyze', '-p', synth, '-p', other, '--output-format', 'json'));
  for (const i of [0, 1]) assert.ok(compareTables(says.runs[i], await shownTables(page, i)) > 100);
  const alone = page.getByRole('button', { name: 'alone' });
  await page.locator('header select.runs').selectOption('1');
  await alone.click();
  await page.waitForFunction(() => window.tacho.app.analysis?.tables.length === 1);
  assert.ok(
    compareTables(JSON.parse(await run('analyze', '-p', other, '--output-format', 'json')), await shownTables(page)) >
      100,
  );
  await page.waitForFunction(() => /counters=alone/.test(location.hash) && /run=1/.test(location.hash));
  // One kernel ticked stays the kernel where the other folder has it, too.
  await page.locator('table[data-table="0.1"] tbody tr', { hasText: 'saxpy' }).locator('input').click();
  await page.getByRole('button', { name: 'all folders compared' }).click();
  await page.waitForFunction(
    () =>
      window.tacho.app.analysis?.tables.length === 2 &&
      document.querySelector('.report').shadowRoot.querySelectorAll('table[data-table="0.1"] input:checked').length ===
        2,
  );
  await page.reload();
  await page.waitForFunction(
    () =>
      document.querySelector('.report')?.shadowRoot?.querySelectorAll('table[data-table="0.1"] input:checked')
        .length === 2,
  );
  await close();
});

test('one kernel, wherever it is chosen, is that of every view', async () => {
  const both = path.join(folder, 'every');
  cpSync(synth, both, { recursive: true });
  const names = JSON.parse(await run('analyze', '-p', synth, '--output-format', 'json')).tables[0].rows.map(
    (row) => row.cells[0],
  );
  const trace = path.join(both, 'trace.json');
  writeFileSync(
    trace,
    JSON.stringify({
      traceEvents: names.flatMap((name, i) => [
        {
          ph: 'X',
          cat: 'cuda_runtime',
          name: 'cudaLaunchKernel',
          pid: 1,
          tid: 1,
          ts: 1000 * (i + 1) - 20,
          dur: 10,
          args: { correlation: i + 1 },
        },
        {
          ph: 'X',
          cat: 'kernel',
          name,
          pid: 0,
          tid: 7,
          ts: 1000 * (i + 1),
          dur: 500 - i,
          args: { device: 0, stream: 7, correlation: i + 1 },
        },
      ]),
    }),
  );
  const kernel = names.find((name) => name.startsWith('saxpy'));
  const { page, close } = await open(await serve(trace), { hash: 'view=overview' });
  await page.waitForFunction(
    () => window.tacho.app.overview?.findings_ready !== false && window.tacho.app.overview?.provisional !== true,
  );
  const at = async (view) => {
    await page.evaluate((name) => (window.tacho.app.view = name), view);
    await page.waitForFunction(
      (name) => document.querySelector('nav[aria-label="views"] .on')?.textContent.toLowerCase() === name,
      view,
    );
  };
  const ticks = () =>
    page.evaluate(() =>
      [
        ...(document.querySelector('.report')?.shadowRoot?.querySelectorAll('table[data-table="0.1"] input:checked') ??
          []),
      ].map((each) => each.closest('tr').dataset.kernel),
    );
  const drawnFrame = async () => {
    await page.waitForFunction(() => window.tacho.panel()?.settled?.() && window.tacho.panel().drawn()?.length > 0);
    return page.evaluate(
      () =>
        window.tacho
          .panel()
          .drawn()
          .filter((each) => each.label.startsWith('saxpy'))[0],
    );
  };
  // How each view chooses, and how it says what is chosen.
  const choosing = {
    overview: () => page.locator('.overview table[data-kind="kernel"] tr', { hasText: 'saxpy' }).click(),
    kernels: () => page.locator('.kernels .row', { hasText: 'saxpy' }).click(),
    flame: async () => {
      const box = await drawnFrame();
      const area = await page.locator('#canvas').boundingBox();
      await page.mouse.click(area.x + box.x + box.w / 2, area.y + box.depth * 19 + 10);
    },
    counters: () => page.locator('table[data-table="0.1"] tbody tr', { hasText: 'saxpy' }).locator('input').click(),
  };
  const saying = {
    overview: () =>
      page.waitForFunction(() => document.querySelector('.overview tr.on')?.textContent.includes('saxpy')),
    timeline: () =>
      page.waitForFunction(
        () =>
          window.tacho.app.chosen?.size === 1 &&
          [...window.tacho.app.chosen][0] === window.tacho.app.kernel.name &&
          window.tacho.app.kernel.name >= 0,
      ),
    kernels: () =>
      page.waitForFunction(
        () =>
          document.querySelector('.kernels .row.on')?.textContent.includes('saxpy') &&
          document.querySelector('.plots .facts') !== null,
      ),
    flame: () =>
      page.waitForFunction(() => /in the kernel chosen/.test(document.querySelector('#matched')?.textContent ?? '')),
    counters: () =>
      page.waitForFunction(() => {
        const on = document
          .querySelector('.report')
          ?.shadowRoot?.querySelectorAll('table[data-table="0.1"] input:checked');
        return on?.length === 1 && on[0].closest('tr').dataset.kernel.startsWith('saxpy');
      }),
    sql: () => page.getByRole('button', { name: 'insert the chosen kernel' }).waitFor(),
  };
  const silent = {
    overview: () =>
      page.waitForFunction(
        () =>
          document.querySelector('.overview table[data-kind="kernel"]') !== null &&
          document.querySelector('.overview tr.on') === null,
      ),
    timeline: () => page.waitForFunction(() => window.tacho.app.chosen === null),
    kernels: () =>
      page.waitForFunction(
        () => document.querySelector('.kernels .row') !== null && document.querySelector('.kernels .row.on') === null,
      ),
    flame: async () => {
      await drawnFrame();
      await page.waitForFunction(
        () => !/in the kernel chosen/.test(document.querySelector('#matched')?.textContent ?? ''),
      );
    },
    counters: async () => {
      await page.locator('table[data-table="0.1"]').waitFor();
      assert.deepEqual(await ticks(), []);
    },
    sql: async () => assert.equal(await page.getByRole('button', { name: 'insert the chosen kernel' }).count(), 0),
  };
  for (const [from, choosesThere] of Object.entries(choosing)) {
    await at(from);
    await choosesThere();
    await page.waitForFunction((name) => window.tacho.app.kernel?.text === name, kernel);
    for (const [to, says] of Object.entries(saying)) {
      await at(to);
      await says();
    }
    await at('timeline');
    await page.evaluate(() => window.tacho.app.chooseKernel(null));
    for (const [to, quiet] of Object.entries(silent)) {
      await at(to);
      await quiet();
    }
  }
  // SQL takes it over, quotes and all.
  await at('kernels');
  await choosing.kernels();
  await at('sql');
  await page.locator('textarea').fill('SELECT count(*) FROM tacho.dispatch WHERE ');
  await page.getByRole('button', { name: 'insert the chosen kernel' }).click();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.locator('table.result thead', { hasText: 'count(*)' }).waitFor();
  assert.equal(await page.locator('table.result tbody td').innerText(), '1');
  // Ticked off where it was ticked on, it is gone everywhere; two ticked are no kernel of the other views.
  await at('counters');
  await page.waitForFunction(
    () =>
      document.querySelector('.report')?.shadowRoot?.querySelectorAll('table[data-table="0.1"] input:checked')
        .length === 1,
  );
  await page.locator('table[data-table="0.1"] tbody tr input').nth(0).click();
  await page.waitForFunction(() => window.tacho.app.kernel === null);
  assert.equal((await ticks()).length, 2);
  await close();
});

test('tables of a span say how much of the copies kernels hide', async () => {
  const file = path.join(folder, 'hidden.json');
  writeFileSync(
    file,
    JSON.stringify({
      traceEvents: [
        {
          ph: 'X',
          cat: 'kernel',
          name: 'gemm',
          pid: 0,
          tid: 7,
          ts: 1000,
          dur: 100,
          args: { device: 0, stream: 7, correlation: 1 },
        },
        {
          ph: 'X',
          cat: 'gpu_memcpy',
          name: 'Memcpy HtoD (Pinned -> Device)',
          pid: 0,
          tid: 8,
          ts: 1060,
          dur: 100,
          args: { device: 0, stream: 8, correlation: 2, bytes: 4096 },
        },
      ],
    }),
  );
  const { page, close } = await open(await serve(file), { hash: 'view=timeline' });
  const cells = async (from, to) => {
    await page.evaluate(([a, b]) => window.tacho.app.choose([a, b], true), [from, to]);
    await page.waitForFunction(() => !window.tacho.app.tablesBusy && window.tacho.app.tables !== null);
    return page.locator('.devices tbody td').evaluateAll((all) => all.map((cell) => cell.title || cell.textContent));
  };
  assert.deepEqual((await cells(0, 160000)).slice(1), ['160,000 ns', '0 ns', '0', '40,000 ns']);
  assert.equal((await cells(80000, 160000))[4], '20,000 ns');
  await close();
});

test('a run of the host alone says where its time can be seen', async () => {
  const file = path.join(folder, 'host.tacho');
  await run(
    'trace',
    '--sampler',
    'timer',
    '-q',
    '-o',
    file,
    '--',
    'python3',
    '-c',
    'import time\nend = time.time() + 0.7\nwhile time.time() < end: sum(range(1000))',
  );
  const samples = (await query(file, 'SELECT count(*) FROM tacho.sample'))[0][0];
  const { page, close } = await open(await serve(file), { hash: 'view=overview' });
  await page.locator('.headline', { hasText: 'no device ran anything in this run' }).waitFor();
  assert.equal((await page.locator('.samples').innerText()).split(' ')[0], samples.toLocaleString('en-US'));
  assert.equal(await page.locator('.overview canvas').count(), 0, 'no empty plot');
  await page.getByRole('button', { name: 'show them as a flame graph' }).click();
  await page.waitForFunction(() => window.tacho.panel()?.drawn?.()?.length > 1);
  await close();
});

test('a span and a rank selected are said in every view', async () => {
  const { page, close } = await open(await serve(ranks4), { hash: 'view=ranks&step=5&rank=2' });
  await page.locator('.heat canvas').waitFor();
  const step = await page.evaluate(async () => (await window.tacho.app.extra('ranks')).steps[5]);
  await page.evaluate(
    ([from, to]) => window.tacho.app.choose([from, to], true),
    [step.begin_ns, step.begin_ns + step.length_ns],
  );
  await page.locator('[data-spanned]', { hasText: /Steps? / }).waitFor();
  await page.locator('tr.within[data-step="5"]').waitFor();
  assert.ok((await page.locator('tr.within').count()) < 10);
  for (const view of ['overview', 'timeline', 'kernels', 'flame', 'sql']) {
    await page.evaluate((name) => (window.tacho.app.view = name), view);
    await page.locator('footer', { hasText: 'rank 2' }).waitFor();
    await page.locator('footer', { hasText: 'selected' }).waitFor();
    if (view === 'kernels')
      await page
        .locator('.kernels .bar-top', { hasText: /in the .* selected[^]*of all ranks, not of rank 2 alone/ })
        .waitFor();
    if (view === 'flame') await page.locator('.flame-note', { hasText: 'Of all ranks' }).waitFor();
    if (view === 'timeline') {
      await page.evaluate(
        ([from, to]) => window.tacho.app.showRank(2, from, to),
        [step.begin_ns, step.begin_ns + step.length_ns],
      );
      await page.locator('.names .of-rank').first().waitFor();
    }
    if (view === 'sql') await page.getByRole('button', { name: 'insert the selected span' }).waitFor();
  }
  await close();
});

test('ranks and counters fit a narrow window, in both schemes', async () => {
  for (const [address, hash] of [
    [await write(ranks4), 'view=ranks'],
    [await write(synth), ''],
  ])
    for (const colorScheme of ['light', 'dark']) {
      const { page, close } = await open(address, { hash, colorScheme });
      await page.locator('.heat canvas, .report h1').first().waitFor();
      for (const width of [1600, 1099, 900, 700]) {
        await page.setViewportSize({ width, height: 800 });
        await page.waitForFunction((wanted) => innerWidth === wanted, width);
        const over = await page.evaluate(async () => {
          // Canvases are given their size by an observer, in the frame after the one that laid the page out.
          for (let frame = 0; frame < 3; ++frame) await new Promise((done) => requestAnimationFrame(done));
          const inside = document.querySelector('.ranksview, .counters');
          return Math.max(document.documentElement.scrollWidth - innerWidth, inside.scrollWidth - inside.clientWidth);
        });
        assert.ok(over <= 0, `${hash} at ${width}: ${over} pixels too wide`);
      }
      await close();
    }
});
