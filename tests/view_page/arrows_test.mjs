// Arrows along graphs and telemetry in the page of tacho view: what is drawn is what tacho query says of the same file.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { folder, open, settled, start, stop } from './harness.mjs';
import { data, query, serve, write } from './program.mjs';

const graphs = path.join(folder, 'graphs.json');
before(async () => {
  await start();
  // Two launches of one graph, with kernels on two streams and a copy, and a kernel that is launched by itself.
  const events = [
    { name: 'process_name', ph: 'M', pid: 10, tid: 0, args: { name: 'python3' } },
    {
      name: 'cudaLaunchKernel',
      cat: 'cuda_runtime',
      ph: 'X',
      pid: 10,
      tid: 11,
      ts: 100,
      dur: 5,
      args: { correlation: 1 },
    },
    {
      name: 'alone',
      cat: 'kernel',
      ph: 'X',
      pid: 0,
      tid: 7,
      ts: 110,
      dur: 20,
      args: { device: 0, stream: 7, correlation: 1 },
    },
  ];
  for (const [launch, ts] of [
    [2, 200],
    [3, 400],
  ]) {
    events.push({
      name: 'cudaGraphLaunch',
      cat: 'cuda_runtime',
      ph: 'X',
      pid: 10,
      tid: 11,
      ts,
      dur: 30,
      args: { correlation: launch },
    });
    for (let node = 0; node < 6; ++node) {
      const stream = node % 2 === 0 ? 7 : 9;
      const copy = node === 5;
      events.push({
        name: copy ? 'Memcpy DtoD (Device -> Device)' : `node_${node}`,
        cat: copy ? 'gpu_memcpy' : 'kernel',
        ph: 'X',
        pid: 0,
        tid: stream,
        ts: ts + 40 + 20 * node,
        dur: 15,
        args: {
          device: 0,
          stream,
          correlation: launch,
          'graph id': 5,
          'graph node id': 40 + node,
          ...(copy ? { bytes: 4096 } : {}),
        },
      });
    }
  }
  writeFileSync(graphs, JSON.stringify({ schemaVersion: 1, traceEvents: events }));
});
after(stop);

test('arrows lead from the launch of a graph to each of its nodes', async () => {
  const launches = await query(
    graphs,
    "SELECT start, correlation FROM tacho.api WHERE name = 'cudaGraphLaunch' ORDER BY start",
  );
  assert.equal(launches.length, 2);
  const [[alone]] = await query(graphs, "SELECT start FROM tacho.dispatch WHERE name = 'alone'");
  for (const address of [await serve(graphs), await write(graphs)]) {
    const { page: on, close } = await open(address, { hash: 'view=timeline' });
    await settled(on);
    const t0 = Number(await on.evaluate(() => window.tacho.app.current.t0));
    for (const [start, correlation] of launches) {
      const nodes = [];
      for (const table of ['dispatch', 'copy'])
        for (const [name, begin, duration] of await query(
          graphs,
          `SELECT ${table === 'copy' ? "'copy'" : 'name'}, start, duration FROM tacho.${table} WHERE correlation = ${correlation} AND graph_node != 0`,
        ))
          nodes.push([table, table === 'copy' ? '' : name, begin - t0, duration]);
      assert.equal(nodes.length, 6);
      await on.evaluate(
        async ([at, name]) => {
          const { app } = window.tacho;
          const found = await app.source.search(app.run, `^${name}$`, true, null);
          app.select(found.hits.find((hit) => hit.start === at).row);
        },
        [start - t0, 'cudaGraphLaunch'],
      );
      await on.waitForFunction((at) => window.tacho.app.slice?.start === at, start - t0);
      await settled(on);
      const links = await on.evaluate(() =>
        window.tacho.app.slice.links.map(({ table, name, start: begin, duration, how }) => [
          table,
          table === 'copy' ? '' : name,
          begin,
          duration,
          how,
        ]),
      );
      const sorted = (rows) => rows.map(String).sort();
      assert.deepEqual(sorted(links), sorted(nodes.map((node) => [...node, 'launched'])));
      // Each arrow's head is on the canvas, at the beginning of the node, in the accent's colour; none leads to the kernel launched by itself.
      const heads = await on.evaluate((other) => {
        const timeline = window.tacho.timeline();
        const canvas = document.querySelector('.over');
        const context = canvas.getContext('2d');
        const scale = canvas.width / canvas.clientWidth;
        const accent = (x, y) => {
          const { data: cells } = context.getImageData(Math.round((x - 4) * scale), Math.round(y * scale), 2, 1);
          return cells[3] > 100 && cells[2] > cells[0] + 30;
        };
        const { links: all, track } = window.tacho.app.slice;
        const lone = timeline.yOf(all.find((each) => each.name === 'node_0').track, 0);
        return {
          drawn: all.map((each) => accent(timeline.xOf(each.start), timeline.yOf(each.track, each.lane).y)),
          lone: accent(timeline.xOf(other), lone.y),
          from: timeline.yOf(track, 0) !== null,
        };
      }, alone - t0);
      assert.deepEqual(heads, { drawn: Array(6).fill(true), lone: false, from: true });
      // And back: each node names its launch, and the others of the same launch.
      const back = await on.evaluate(async () => {
        const { app } = window.tacho;
        const out = [];
        for (const { row } of app.slice.links) {
          const { links: others } = await app.source.slice(app.run, row);
          out.push(others.filter((each) => each.how === 'launched by').map((each) => [each.name, each.start]));
        }
        return out;
      });
      assert.deepEqual(back, Array(6).fill([['cudaGraphLaunch', start - t0]]));
    }
    await close();
  }
});

test('telemetry: what a counter shows at a moment is the reading in force', async () => {
  const file = path.join(data, 'rpd', 'mytrace.rpd');
  const rows = await query(
    file,
    'SELECT d."index", c.name, c.unit, r.start, r.value FROM tacho.reading r JOIN tacho.track t ON r.track = t.id JOIN tacho.device d ON t.device = d.id JOIN tacho.counter c ON t.counter = c.id ORDER BY r.start',
  );
  const readings = new Map();
  for (const [device, name, , at, value] of rows) {
    const key = `GPU ${device} ${name}`;
    if (!readings.has(key)) readings.set(key, []);
    readings.get(key).push([at, value]);
  }
  assert.equal(readings.size, 8);
  for (const address of [await serve(file), await write(file)]) {
    const { page: on, close } = await open(address, { hash: 'view=timeline' });
    await settled(on);
    const tracks = await on.evaluate(() =>
      window.tacho.app.current.tracks
        .filter((track) => track.kind === 'counter')
        .map(({ id, name, unit, max, min }) => ({ id, name, unit, max, min })),
    );
    assert.deepEqual(
      tracks.map(({ name }) => name),
      [...readings.keys()].sort(),
    );
    const t0 = Number(await on.evaluate(() => window.tacho.app.current.t0));
    const length = await on.evaluate(() => window.tacho.app.length);
    // The whole run, and a stretch of it in which the clock rises.
    for (const [from, to] of [
      [0, length],
      [length * 0.1, length * 0.25],
    ]) {
      await on.evaluate((span) => (window.tacho.app.goal = { from: span[0], to: span[1] }), [from, to]);
      await settled(on);
      for (const { id, name, unit, max } of tracks) {
        const all = readings.get(name);
        assert.equal(unit, 'MHz');
        assert.equal(max, Math.max(...all.map(([, value]) => value)));
        const shown = await on.evaluate((track) => {
          const timeline = window.tacho.timeline();
          const row = timeline.shown.rows.find((each) => each.track.id === track);
          timeline.scroll = Math.max(0, row.top - 100);
          const out = [];
          for (let x = 3; x < timeline.width - 3; x += 7) {
            const found = timeline.find(x, row.top - timeline.scroll + row.first + 4);
            out.push({
              before: timeline.timeAt(x - 2),
              after: timeline.timeAt(x + 2),
              ...(found.what === 'counter' ? { value: found.value, min: found.min, max: found.max } : {}),
            });
          }
          return out;
        }, id);
        let told = 0;
        for (const each of shown) {
          // A column may lie a pixel beside the exact place: any reading in force around it.
          const within = all.filter(([at]) => at - t0 > each.before && at - t0 <= each.after).map(([, value]) => value);
          const last = all.filter(([at]) => at - t0 <= each.before).at(-1);
          const allowed = [...(last === undefined ? [] : [last[1]]), ...within];
          if (each.value === undefined)
            assert.equal(last, undefined, `${name}: nothing is shown after the first reading`);
          else {
            ++told;
            assert.ok(allowed.includes(each.value), `${name} at ${each.before}: ${each.value}, not ${allowed}`);
            assert.ok(
              allowed.includes(each.min) &&
                allowed.includes(each.max) &&
                each.min <= each.value &&
                each.value <= each.max,
            );
          }
        }
        assert.ok(told > 50, name);
      }
    }
    await close();
  }
});
