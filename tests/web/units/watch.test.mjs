// What the page of tacho watch computes from two moments.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './modules.mjs';

const { change, comparable, cost, earlierOnes, gpus, hostCost, idle, place, sorted, timeSince, title } =
  await load('watch/moment');
const { average, error, rate, whole } = await load('watch/cells');

/** `timed`: operations for which the timed ones stand. */
const kernel = (name, count, timed, time, more = {}) => ({
  kind: 'kernel',
  name,
  grid: [4096, 1, 1],
  group: [256, 1, 1],
  count,
  total_ns: (time / timed) * count,
  interval_95_ns: 5,
  buckets: [
    [3, timed / 2],
    [9, timed / 2],
  ],
  stood_ns: time,
  ...more,
});
const moment = (seconds, rows, more = {}) => ({
  run: 'a',
  title: './app',
  host: 'node1',
  seconds,
  rows,
  processes: [],
  gpus: [],
  host_ns: null,
  budget: 0.01,
  timing: true,
  cost: null,
  notes: [],
  ...more,
});

test('titles have the dimensions that are not 1', () => {
  assert.equal(title({ name: 'k', grid: [8, 1, 1], group: [4, 1, 1] }), 'k 8/4');
  assert.equal(title({ name: 'k', grid: [8, 1, 2], group: [4, 2, 1] }), 'k 8x1x2/4x2');
  assert.equal(title({ name: 'k', grid: [8, 4, 1], group: null }), 'k 8x4');
  assert.equal(title({ name: 'copy' }), 'copy');
});

test('operations that were not timed take the mean of those that were', () => {
  assert.equal(timeSince(kernel('k', 100, 10, 500)), 5000);
  assert.equal(timeSince(kernel('k', 160, 12, 560), kernel('k', 100, 10, 500)), 60 * 30);
  // None was timed since then, or none at all.
  assert.equal(timeSince(kernel('k', 160, 10, 500), kernel('k', 100, 10, 500)), 60 * 50);
  assert.equal(timeSince({ count: 9, at_most_ns: 90 }, { count: 6 }), 30);
  assert.equal(timeSince({ count: 9 }, { count: 6 }), 0);
  assert.equal(timeSince(kernel('k', 100, 10, 500), kernel('k', 100, 10, 500)), 0);
});

test('rates and shares are of the time between two moments', () => {
  const before = moment(10, [kernel('a', 1000, 1000, 1e9), kernel('b', 10, 10, 1e6)]);
  const now = moment(12, [
    kernel('a', 1100, 1100, 1.4e9),
    kernel('b', 30, 30, 2e8 + 1e6),
    kernel('c', 2, 2, 4e8),
    {
      kind: 'copy',
      name: 'host to device',
      count: 4,
      bytes: 4000,
      buckets: [[1, 4]],
      stood_ns: 1e8,
    },
    { kind: 'wait', name: 'w', count: 8, buckets: [[1, 8]], stood_ns: 2e8 },
  ]);
  const { pace, kernels, others, seconds } = change(before, now);
  assert.equal(seconds, 2);
  assert.equal(pace.launches, (100 + 20 + 2) / 2);
  assert.equal(pace.bytes, 2000);
  assert.equal(pace.waits, 4);
  assert.ok(Math.abs(pace.kernels - 0.5) < 1e-9);
  assert.ok(Math.abs(pace.copies - 0.05) < 1e-9);
  assert.ok(Math.abs(pace.waiting - 0.1) < 1e-9);
  assert.deepEqual(
    kernels.map((line) => Number(line.share.toFixed(3))),
    [0.4, 0.2, 0.4],
  );
  assert.deepEqual(
    others.map((line) => line.rate),
    [2, 4],
  );
  assert.ok(Math.abs(idle(pace, now) - 0.45) < 1e-9);
  assert.equal(idle(pace, { ...now, hosts: [] }), null);
});

test('without an earlier moment there are no rates, nor where a watch came meanwhile', () => {
  const now = moment(5, [kernel('a', 10, 10, 100)]);
  for (const before of [null, moment(4, [], { run: 'b' }), moment(4, [], { generation: 1 })]) {
    assert.equal(comparable(before, now), false);
    const { pace, kernels } = change(before, now);
    assert.equal(pace, null);
    assert.equal(kernels[0].share, null);
    assert.ok(Number.isNaN(kernels[0].rate));
    assert.equal(kernels[0].time, 100);
  }
});

test('a bound is no time', () => {
  const [line] = change(
    null,
    moment(1, [
      kernel('a', 4, 1, 1, {
        total_ns: null,
        at_most_ns: 80,
        interval_95_ns: null,
      }),
    ]),
  ).kernels;
  assert.deepEqual([line.time, line.bound, line.error], [80, true, null]);
});

test('orders', () => {
  const before = moment(0, [kernel('b', 5, 5, 50)]);
  const { kernels } = change(before, moment(1, [kernel('a', 1, 1, 900), kernel('b', 9, 9, 90), kernel('c', 3, 3, 9)]));
  const names = (order) =>
    sorted(kernels, order)
      .map((line) => line.row.name)
      .join('');
  assert.equal(names('now'), 'abc');
  assert.equal(names('rate'), 'bca');
  assert.equal(names('launches'), 'bca');
  assert.equal(names('time'), 'abc');
  assert.equal(names('average'), 'abc');
  assert.equal(names('name'), 'abc');
});

test('GPUs of other machines have their names', () => {
  const reading = (gpu, name, value) => ({ gpu, name, unit: 'MHz', value });
  const all = gpus(
    moment(1, [], {
      hosts: [
        {
          name: 'n1',
          address: 'a:1',
          gpus: [reading(0, 'Core Clock', 5), reading(1, 'Core Clock', 6)],
        },
        { name: '', address: 'b:1', gpus: [reading(0, 'Core Clock', 7)] },
      ],
    }),
  );
  assert.deepEqual(
    all.map((gpu) => [gpu.host, gpu.gpu, gpu.values['Core Clock'].value]),
    [
      ['n1', 0, 5],
      ['n1', 1, 6],
      ['b:1', 0, 7],
    ],
  );
});

test('what watching costs', () => {
  assert.equal(cost(moment(2, [])), 'of the pace: not measured yet');
  assert.equal(cost(moment(2, [], { host_ns: 2e7, timing: false })), 'host 1.00 %, counts only');
  assert.equal(
    cost(moment(2, [], { cost: { share: 0.001, low: -0.002, high: 0.006 } })),
    'of the pace -0.2 % to 0.6 %, budget 1.0 %',
  );
});

test('what watching costs one of several hosts', () => {
  const host = {
    host_ns: 2e7,
    seconds: 2,
    timing: true,
    cost: { share: 0.001, low: -0.002, high: 0.006 },
  };
  assert.equal(hostCost(host), 'host 1.00 %, pace -0.2 % to 0.6 %');
  assert.equal(hostCost({ ...host, cost: null, host_ns: null }), '');
  assert.equal(hostCost({ ...host, timing: false }), 'host 1.00 %, counts only');
});

test('cells of lines', () => {
  const line = { row: { count: 4 }, time: 8000, bound: false, error: 0.05 };
  assert.deepEqual([whole(line), average(line), error(line)], ['8.000 us', '2.000 us', '5.0']);
  assert.deepEqual([whole({ ...line, bound: true }), average({ ...line, bound: true })], ['≤ 8.000 us', '≤ 2.000 us']);
  assert.deepEqual(
    [whole({ ...line, time: null }), average({ ...line, time: null }), error({ ...line, error: null })],
    ['—', '—', '—'],
  );
  assert.deepEqual([rate(NaN), rate(5 / 0), rate(5)], ['—', '—', '5']);
});

test('what the moment before has of the same', () => {
  const processes = (launches) => [{ pid: 7, launches }];
  const before = moment(1, [], { processes: processes(3) });
  const now = moment(2, [], { processes: processes(8) });
  const of = (from) =>
    earlierOnes(
      from,
      now,
      (each) => each.processes,
      (one) => one.pid,
    );
  assert.equal(of(before).get(7).launches, 3);
  assert.equal(of(null).size, 0);
  assert.equal(of({ ...before, run: 'another' }).size, 0);
});

test('a line of the host is its place in the source, or the file that has the code', () => {
  assert.equal(place({ file: '/src/app.c', line: 17, module: '/bin/app' }), 'app.c:17');
  assert.equal(place({ file: '', line: null, module: '/lib/libc.so.6' }), 'libc.so.6');
  assert.equal(place({ file: '', line: null, module: '[code without a file]' }), '[code without a file]');
});
