// Rows of the timeline, columns of SQL, trees of stacks, and pixels of a lane.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './modules.mjs';

const { TrackTree, rowAt } = await load('view/rows');
const columns = await load('view/columns');
const flame = await load('flame/tree');
const { Raster } = await load('view/paint');
const { themeOf } = await load('view/colour');

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
  assert.equal(columns.readable('1000002500', 'time', 1000000000n), '2.500 µs');
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
