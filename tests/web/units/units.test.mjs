// Numbers, times and names as the pages show them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './modules.mjs';

const units = await load('view/units');
const format = await load('format');
const { compactName, compactNames } = await load('view/compact');
const { filterOf } = await load('view/filter');

test('a time has four digits and the unit in which it is at least one', () => {
  const texts = {
    0: '0',
    1: '1 ns',
    999: '999 ns',
    1000: '1.000 us',
    1234567: '1.235 ms',
    4.2e9: '4.200 s',
    1e13: '10,000 s',
  };
  for (const [ns, text] of Object.entries(texts)) assert.equal(units.time(Number(ns)), text);
  assert.equal(units.time(NaN), '—');
  assert.equal(units.time(999960), '1.000 ms', 'rounding never gives 1000 of a unit');
});

test('ticks are 1, 2 or 5 times a power of ten apart', () => {
  for (const [least, step] of [
    [1, 1],
    [1.1, 2],
    [2.1, 5],
    [5.1, 10],
    [99, 100],
    [0.3, 0.5],
  ])
    assert.equal(units.tickStep(least), step);
});

test('a moment has the digits that its step needs', () => {
  assert.equal(units.moment(1234567, 1000), '1.235 ms');
  assert.equal(units.moment(1234567, 1), '1.234567 ms');
  assert.equal(units.moment(0, 1), '0');
});

test('a share is never rounded to all or nothing', () => {
  assert.equal(units.percent(1, 100000), '<0.1 %');
  assert.equal(units.percent(99999, 100000), '>99.9 %');
  assert.equal(units.percent(0, 5), '0 %');
  assert.equal(units.percent(5, 0), '—');
});

test('bytes count in powers of 1024', () => {
  assert.equal(units.bytes(1000), '1000 B');
  assert.equal(units.bytes(1536), '1.50 KiB');
  assert.equal(units.bytes(1024 ** 3 * 200), '200 GiB');
});

test('a label stays on one line and within its length', () => {
  assert.equal(units.oneLine('a\n\tb'), 'a b');
  const line = units.oneLine('x'.repeat(500) + 'y'.repeat(500), 100);
  assert.ok(line.length <= 101 && line.startsWith('x') && line.endsWith('y') && line.includes('…'));
});

test('numbers in diagrams take five characters', () => {
  for (const [value, text] of [
    [0, '0'],
    [1234567, '1.23M'],
    [9999, '9,999'],
    [-2500000000, '-2.50G'],
    [Infinity, '∞'],
  ])
    assert.equal(format.short(value), text);
});

test('a change says its direction', () => {
  for (const [value, text] of [
    [12.34, '+12.3 %'],
    [-0.001, '−<0.1 %'],
    [0, '0 %'],
    [null, ''],
  ])
    assert.equal(format.change(value), text);
});

test('a kernel is shown without return type, namespaces and parameters, unless that hides a difference', () => {
  assert.equal(
    compactName('void at::native::(anonymous namespace)::scale<float, at::Half>(float*, int) const'),
    'scale<float, Half>',
  );
  assert.equal(compactName('plain_name'), 'plain_name');
  const names = ['void one::scale<float>(int)', 'void two::scale<float>(int)', 'void three::other<int>()'];
  assert.deepEqual(compactNames(names), [names[0], names[1], 'other<int>']);
});

test('a filter that is no expression is looked for as it stands', () => {
  assert.ok(filterOf('Scale.*\\(').pattern.test('a scale<float>('));
  const literal = filterOf('scale<float>(');
  assert.ok(literal.literal && literal.pattern.test('a scale<float>(x)') && !literal.pattern.test('scale'));
  assert.equal(filterOf('').pattern, null);
});
