// The self-contained page answers what the server answers: equal tiles at every level, sums of spans, slices with what is
// known of them, distributions and searches, for each recording.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { open, start, stop } from './harness.mjs';
import { data, serve, write } from './program.mjs';

const files = [
  'traces/kineto_h100_qwen1.5-0.5b.json.gz',
  'traces/kineto_mi300x_resnet_checkpoint.json.gz',
  'traces/kineto_mi250_toy_rocm6.2.json.gz',
  'traces/rocprofv3_gfx950_results.json.gz',
].map((each) => path.join(data, each));

before(start);
after(stop);

/** Answers of a page's source, as texts that can be compared. Runs in the page. */
async function answers() {
  const { app } = window.tacho;
  const { source, length } = app;
  const told = {};
  // The same numbers everywhere: places are spread evenly over what there is.
  const spread = (count, many) => [
    ...new Set(Array.from({ length: many }, (_, i) => Math.floor((i * (count - 1)) / Math.max(1, many - 1)))),
  ];
  const round = (_, value) =>
    typeof value === 'bigint'
      ? String(value)
      : ArrayBuffer.isView(value)
        ? [...value].map((each) => (typeof each === 'bigint' ? String(each) : Number.isNaN(each) ? 'nan' : each))
        : value;
  const tracks = app.current.tracks.map((each) => each.id);
  const rows = new Set();
  let top = 0;
  while (512 * 2 ** top < length) ++top;
  for (let level = top; level >= 0; --level) {
    const last = Math.ceil(length / (512 * 2 ** level)) - 1;
    for (const index of spread(last + 1, level > top - 4 ? 16 : 5))
      for (const { bytes: _, ...tile } of await source.tiles(0, level, index, tracks, new AbortController().signal)) {
        told[`tile ${level} ${index} ${tile.track}`] = JSON.stringify(tile, round);
        if (tile.kind === 'slices') for (const i of spread(tile.row.length, 2)) rows.add(String(tile.row[i]));
      }
  }
  const spans = [
    [0, length],
    [Math.floor(length * 0.31), Math.floor(length * 0.47)],
    [Math.floor(length * 0.5), Math.floor(length * 0.5001) + 2],
  ];
  for (const span of spans) {
    const tables = await source.span(0, ...span);
    for (const what of ['kernels', 'calls', 'copies', 'markers', 'devices']) told[`${what} of ${span}`] = tables[what];
    if (span === spans[0])
      for (const name of [...tables.kernels, ...tables.calls, ...tables.markers].slice(0, 40).map((each) => each.name))
        for (const [from, to] of spans) {
          const { share_read: _, ...kernel } = await source.kernel(0, name, from, to);
          // Powers differ in their last bit.
          kernel.histogram.edges = kernel.histogram.edges.map((each) => each.toPrecision(12));
          told[`kernel ${name} in ${from} ${to}`] = kernel;
        }
  }
  rows.delete(String(2n ** 64n - 1n));
  const all = [...rows];
  for (const row of spread(all.length, 400).map((i) => all[i])) {
    const { row: _, name_id, flags, around, links, stack, ...rest } = await source.slice(0, row);
    told[`slice ${row}`] = {
      ...rest,
      links: (links ?? []).map((each) => JSON.stringify(each, Object.keys(each).sort())).sort(),
    };
    if ((stack ?? []).length === 0) told[`around ${row}`] = around ?? [];
  }
  for (const words of ['e', '^cuda|^hip', 'kernel.*<', 'nothing is called so']) {
    const { matching_names: _, ...found } = await source.search(0, words, false, null);
    told[`search ${words}`] = { names: found.names, hits: found.hits, more: found.more !== null };
  }
  return told;
}

for (const file of files)
  test(`${path.basename(file)}: both sources give the same answers`, async () => {
    const told = [];
    for (const address of [await serve(file), await write(file)]) {
      const { page, close } = await open(address, { hash: 'view=sql' });
      await page.waitForFunction(() => (window.tacho.app.current.ready ?? 1) >= 1);
      told.push(await page.evaluate(answers));
      await close();
    }
    const [served, embedded] = told;
    const differ = [...new Set([...Object.keys(served), ...Object.keys(embedded)])].filter(
      (key) => !isDeepStrictEqual(served[key], embedded[key]),
    );
    const short = (value) => JSON.stringify(value)?.slice(0, 1000);
    assert.equal(
      differ.length,
      0,
      `${differ.length} differ: ${differ.slice(0, 3).map((key) => `\n${key}\n  served: ${short(served[key])}\n  in the page: ${short(embedded[key])}`)}`,
    );
  });
