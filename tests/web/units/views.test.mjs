// Rows of the timeline, columns of SQL, trees of stacks, and pixels of a lane.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './modules.mjs';

const { TrackTree, rowAt } = await load('view/rows');
const columns = await load('view/columns');
const flame = await load('flame/tree');
const { Raster } = await load('view/paint');
const { themeOf } = await load('view/colour');
const { fitNames } = await load('view/compact');
const { reading } = await load('view/units');

const track = (id, parent, kind, more = {}) => ({
  id,
  parent,
  kind,
  name: `${kind} ${id}`,
  sort: id,
  lanes: 1,
  events: 1,
  ...more,
});

test('rows follow the tree; what is closed or without events takes none', () => {
  const tree = new TrackTree({
    tracks: [
      track(0, -1, 'process', { events: 0 }),
      track(1, 0, 'thread', { lanes: 3 }),
      track(2, 0, 'queue'),
      track(3, 0, 'queue', { events: 0 }),
    ],
  });
  const { rows, height } = tree.rows(new Set());
  assert.deepEqual(
    rows.map((row) => [row.track.id, row.depth, row.what]),
    [
      [0, 0, 'group'],
      [1, 1, 'slices'],
      [2, 1, 'slices'],
    ],
  );
  assert.equal(
    height,
    rows.reduce((sum, row) => sum + row.height, 0),
  );
  assert.equal(rows[rowAt(rows, rows[1].top + 1)].track.id, 1);
  assert.equal(rowAt(rows, height), rows.length);
  assert.deepEqual(
    tree.rows(new Set([0])).rows.map((row) => row.track.id),
    [0],
  );
  assert.deepEqual(tree.ancestors(2), [0]);
});

test('the busiest queue comes first, those that did next to nothing are folded, helpers come last', () => {
  const run = {
    length: 1e9,
    run_length: 1e6,
    tracks: [
      track(0, -1, 'process', { events: 0, helper: true }),
      track(1, 0, 'thread'),
      track(2, -1, 'process', { events: 0 }),
      track(3, 2, 'queue', { busy: 100, name: 'GPU 0 stream 1' }),
      track(4, 2, 'queue', { busy: 2000, name: 'GPU 0 stream 2' }),
      track(5, 2, 'queue', { busy: 999, name: 'GPU 0 stream 3' }),
      track(6, 2, 'queue', { busy: 9e5, name: 'GPU 0 stream 4' }),
      track(7, 2, 'queue', { busy: 0, name: 'GPU 0 stream 5' }),
      track(8, 2, 'queue', { busy: 1e6, tables: ['marker'], name: 'GPU 0 ranges of stream 4' }),
      track(9, 2, 'thread'),
      track(10, -1, 'process', { events: 0, helper: true }),
      track(11, 10, 'counter'),
    ],
  };
  const tree = new TrackTree(run);
  const shown = (closed, choice) => tree.rows(closed, choice).rows.map((row) => row.track.name);
  const first = tree.closedAtFirst();
  assert.deepEqual(shown(first), [
    'process 2',
    'GPU 0 stream 4',
    'GPU 0 stream 2',
    'GPU 0 ranges of stream 4',
    '3 streams below 0.1 % busy',
    'thread 9',
    '2 other processes',
  ]);
  // Unfolded, nothing is missing, and a link to a folded queue leads there.
  assert.equal(shown(new Set()).length, run.tracks.length + 2);
  const fold = tree.rows(first).rows[4];
  assert.equal(fold.lanes, 0);
  assert.deepEqual(tree.ancestors(7), [fold.track.id, 2]);
  // A filter shows what matches and where it lies, whatever is closed; what is hidden is gone; pinned ones come first.
  const choice = (more) => ({ hidden: new Set(), matches: null, pinned: [], ...more });
  assert.deepEqual(shown(first, choice({ matches: (name) => /stream [35]$/.test(name) })), [
    'process 2',
    '3 streams below 0.1 % busy',
    'GPU 0 stream 3',
    'GPU 0 stream 5',
  ]);
  assert.ok(!shown(first, choice({ hidden: new Set([6, 2]) })).some((name) => name.startsWith('GPU')));
  const pinned = tree.rows(first, choice({ pinned: [9, 7] }));
  assert.deepEqual(
    pinned.rows.slice(0, 3).map((row) => [row.track.id, row.pinned, row.depth]),
    [
      [9, true, 0],
      [7, true, 0],
      [2, false, 0],
    ],
  );
  assert.equal(pinned.pinned, pinned.rows[2].top);
  assert.equal(pinned.rows.filter((row) => row.track.id === 9).length, 1);
  // While the run is recorded everything keeps its place.
  const live = new TrackTree({ ...run, live: true });
  assert.deepEqual(
    live.rows(new Set()).rows.map((row) => row.track.id),
    run.tracks.map((each) => each.id),
  );
});

test('columns of SQL mean what tables and names say', () => {
  const schema = {
    tables: [
      {
        name: 'dispatch',
        columns: [
          { name: 'start', type: 'time' },
          { name: 'duration', type: 'duration' },
        ],
      },
    ],
  };
  assert.deepEqual(
    columns.meanings(['start', 'sum(duration)', 'sum(start)', 'total_bytes', 'share_percent', 'name'], schema),
    ['time', 'duration', '', 'bytes', 'percent', ''],
  );
  assert.equal(columns.readable('1000002500', 'time', 1000000000n), '2.500 us');
  assert.equal(columns.readable(2048, 'bytes', 0n), '2.00 KiB');
  assert.equal(columns.plain(null), 'NULL');
});

const stacks = {
  name: 'a',
  command: '',
  samples: 3,
  wall: false,
  hostNs: 30,
  gpuNs: 5,
  gpuExactNs: 5,
  gpuNearNs: 0,
  frames: {
    name: ['', 'main', 'work', 'kernel'],
    part: ['root', 'python', 'python', 'device'],
    file: ['', 'a.py', 'a.py', ''],
    line: [0, 1, 2, 0],
    interpreter: [false, false, false, false],
  },
  nodes: {
    parent: [-1, 0, 1, 2],
    frame: [0, 1, 2, 3],
    host: [0, 10, 20, 0],
    gpu: [0, 0, 0, 5],
    samples: [0, 1, 2, 0],
    launches: [0, 0, 0, 1],
  },
};

test('times of frames add up to the root, top-down and bottom-up', () => {
  const root = flame.load([stacks], 'lines', false);
  assert.deepEqual([root.host[0], root.gpu[0]], [30, 5]);
  const inverted = flame.invert(root);
  assert.deepEqual([inverted.host[0], inverted.gpu[0]], [30, 5]);
  const [main] = root.children.values();
  assert.equal(flame.findPath(root, flame.pathOf(main)), main);
});

test('a lane colours what slices cover, and nothing else', () => {
  const slices = (list) => ({
    kind: 'slices',
    level: 0,
    index: 0,
    lanes: 1,
    start: Float64Array.from(list, (each) => each[0]),
    duration: Float64Array.from(list, (each) => each[1]),
    name: Uint32Array.from(list, () => 1),
    flags: new Uint16Array(list.length),
    lanesAt: Uint32Array.of(0, list.length),
  });
  const theme = themeOf(false);
  const raster = new Raster(100);
  const ink = { theme, hue: () => 120, chosen: null };
  const ground = new Uint32Array(100).fill(theme.lane);
  const piece = {
    tile: slices([
      [10, 20],
      [50, 0],
      [60, 0.01],
    ]),
    from: 0,
    to: 100,
  };
  assert.ok(raster.lane([piece], 0, { from: 0, perPixel: 1, width: 100 }, theme.lane, ground, ink, 100, null, 26));
  const drawn = [...raster.row].flatMap((each, x) => (each === theme.lane ? [] : [x]));
  assert.deepEqual(drawn, [...Array.from({ length: 20 }, (_, i) => 10 + i), 50, 60]);
});

test('names that begin alike keep what tells them apart, and bytes of counters are read as bytes', () => {
  const names = [
    'elementwise_kernel<128, 4, gpu_kernel_impl_nocast<BinaryFunctor<float> > >',
    'elementwise_kernel<128, 4, gpu_kernel_impl_nocast<CUDAFunctor_add<float> > >',
    'gemm',
    'another_long_name_that_nothing_else_begins_with_at_all',
  ];
  const fitted = fitNames(names, 24);
  const seen = fitted.map((name) => name.slice(0, 24));
  assert.equal(new Set(seen).size, names.length, seen.join(' | '));
  assert.ok(seen[0].startsWith('elementwis') && seen[0].includes('…') && seen[0].includes('Binary'), seen[0]);
  assert.ok(seen[1].includes('CUDA'), seen[1]);
  assert.deepEqual(fitted.slice(2), names.slice(2));
  assert.deepEqual(fitNames(names, 200), names, 'with room nothing is left out');
  assert.equal(reading(3.7 * 2 ** 20, 'B'), '3.70 MiB');
  assert.equal(reading(410, 'B'), '410 B');
  assert.equal(reading(410, ''), '410');
  assert.equal(reading(NaN, 'B'), '—');
});
