// Names in sentences, marks in addresses, and what changed between runs of counters.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './modules.mjs';

const { partsOf } = await load('view/linked');
const { marksOf, marksWord, withMark } = await load('view/marks');
const { mannWhitney, percentOf } = await load('changes');
const { questionsOf } = await load('view/questions');

const known = {
  kernels: [
    { name: 3, text: 'void gemm<float>(int)' },
    { name: 4, text: 'void gemm<float>(int)2' },
    { name: 5, text: 'sm90_xmma_gemm_bf16bf16_very_long_kernel__5x_cublas' },
    { name: 6, text: 'ab' },
  ],
  ranks: new Set([0, 2]),
  views: new Set(['ranks', 'code']),
};
const linked = (sentence, of = known) =>
  partsOf(sentence, of)
    .filter((part) => part.what !== 'text')
    .map((part) => [part.what, part.text]);

test('kernels, ranks, lines and commands in a sentence are parts of it, and nothing is lost', () => {
  const sentence =
    'gemm<float> waits 3 ms; sm90_xmma_gemm_b…kernel__5x_cublas, fills 19 % on Rank 2 at src/train.py:31. Look at tacho ranks.';
  assert.deepEqual(linked(sentence), [
    ['kernel', 'gemm<float>'],
    ['kernel', 'sm90_xmma_gemm_b…kernel__5x_cublas'],
    ['rank', 'Rank 2'],
    ['line', 'src/train.py:31'],
    ['view', 'tacho ranks'],
  ]);
  assert.equal(
    partsOf(sentence, known)
      .map((part) => part.text)
      .join(''),
    sentence,
  );
});

test('commands lead to the tab that has their answer', () => {
  const views = (sentence, ...of) =>
    partsOf(sentence, { ...known, kernels: [], views: new Set(of) })
      .filter((part) => part.what === 'view')
      .map((part) => [part.text, part.view]);
  assert.deepEqual(views('and 2 more: tacho stats --by operator --input-shapes', 'operators'), [
    ['tacho stats --by operator --input-shapes', 'roofline'],
  ]);
  assert.deepEqual(views('Look (tacho stats FILE --by line), tacho memory FILE.', 'code', 'memory'), [
    ['tacho stats FILE --by line', 'code'],
    ['tacho memory FILE', 'memory'],
  ]);
  assert.deepEqual(views('tacho stats --by operator, tacho memory', 'ranks'), []);
});

test('what is no name of the run is text: parts of words, other ranks, names of two letters, views that are not there', () => {
  assert.deepEqual(linked('mygemm<float>s, rank 1, ab, sm90_other_b…nothing'), []);
  assert.deepEqual(linked('see tacho ranks and a.py:3', { ...known, views: new Set() }), []);
  assert.deepEqual(linked(''), []);
  assert.deepEqual(linked('m'.repeat(100), { ...known, kernels: [{ name: 1, text: 'm'.repeat(1 << 20) }] }), []);
});

test('marks come back from the address as they were, whatever their notes say', () => {
  const marks = [
    { at: 1200.5, note: 'a, b~c & d = é' },
    { at: 3400, note: '' },
  ];
  assert.deepEqual(marksOf(marksWord([...marks].reverse())), marks);
  assert.deepEqual(marksOf('x,,12~%E0%A4%A,NaN'), [{ at: 12, note: '' }]);
  assert.deepEqual(marksOf(undefined), []);
  assert.equal(withMark(marks, 3400).length, 2);
  assert.equal(withMark(marks, 3401).length, 3);
});

test('Mann-Whitney: no value for few, small for apart, large for the same', () => {
  const of = (n, from) => Array.from({ length: n }, (_, i) => from + i);
  assert.equal(mannWhitney(of(7, 0), of(20, 100)), null);
  assert.ok(mannWhitney(of(20, 0), of(20, 100)) < 1e-6);
  assert.ok(mannWhitney(of(20, 0), of(20, 0)) > 0.9);
  assert.ok(Math.abs(mannWhitney(of(10, 0), of(10, 4)) - 0.0170066) < 1e-6);
  assert.equal(mannWhitney(Array(9).fill(1), Array(9).fill(1)), 1);
  assert.equal(percentOf(0, 3), Infinity);
  assert.equal(percentOf(4, 3), -25);
});

test('questions are those whose tables have something', () => {
  assert.deepEqual(questionsOf(null), []);
  const titles = questionsOf({ dims: { sample: 3 } }).map((each) => each.title);
  assert.deepEqual(titles, ['Functions by samples']);
});
