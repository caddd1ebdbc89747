// Tiles: their bytes, the tiles that a self-contained page makes of its lines, and the store that asks for them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { embedded, makeTrace, tile } from '../../view_page/trace.mjs';
import { load } from './modules.mjs';

const { decodeTiles, kBins, tileSpan } = await load('view/tile');
const { EmbeddedSource } = await load('view/embedded_source');
const { TileStore } = await load('view/tile_store');

const decoded = (bytes, level, index) =>
  decodeTiles(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), level, index);
const comparable = ({ bytes: _, ...each }) =>
  JSON.parse(
    JSON.stringify(each, (_, value) =>
      typeof value === 'bigint' ? String(value) : Number.isNaN(value) ? 'nan' : value,
    ),
  );
const signal = new AbortController().signal;

test('a tile that is cut off or none at all is told', () => {
  const bytes = Buffer.from(tile(makeTrace(1), 2, 8, 0));
  assert.throws(() => decoded(bytes.subarray(0, bytes.length - 8), 8, 0), /cut off/);
  assert.throws(() => decoded(Buffer.alloc(40), 8, 0), /no tile/);
});

test('a page makes the tiles that a server sends, of every line, level and kind', async () => {
  for (const most of [4096, 60]) {
    const trace = makeTrace(7, { slices: 250 });
    const source = await EmbeddedSource.open(embedded(trace, most));
    const kinds = new Set();
    for (let level = 0; tileSpan(level) <= trace.length * 2; ++level)
      for (const index of [0, 1, Math.floor(trace.length / tileSpan(level) / 2)]) {
        if (index * tileSpan(level) >= trace.length) continue;
        for (const { id } of trace.tracks) {
          const [sent] = decoded(tile(trace, id, level, index, most), level, index);
          const [made] = await source.tiles(0, level, index, [id], signal);
          kinds.add(made.kind);
          assert.deepEqual(comparable(made), comparable(sent), `track ${id} level ${level} index ${index}`);
        }
      }
    assert.deepEqual(
      [...kinds].sort(),
      most === 60 ? ['counter', 'density', 'empty', 'slices'] : ['counter', 'empty', 'slices'],
    );
  }
});

test('data that is damaged ends in a sentence', async () => {
  await assert.rejects(
    EmbeddedSource.open(gzipSync(Buffer.from('TEMB\x01\0\0\0    ')).toString('base64')),
    /a form that this page does not know/,
  );
  await assert.rejects(EmbeddedSource.open(gzipSync(Buffer.from('something else')).toString('base64')), /damaged/);
});

/** A source whose tiles are bins down to `finest`, and slices below. */
function fakeSource(finest) {
  const asked = [];
  return {
    asked,
    tiles(_run, level, index, tracks) {
      asked.push([level, index]);
      const common = {
        level: Math.max(level, finest),
        index: level >= finest ? index : Math.floor(index / 2 ** (finest - level)),
        lanes: 1,
        provisional: false,
        bytes: 100,
      };
      return Promise.resolve(
        tracks.map((track) => ({
          ...common,
          track,
          kind: 'density',
          finest: level <= finest,
          lane: new Uint16Array(0),
          bin: new Uint16Array(0),
          lanesAt: new Uint32Array(2),
        })),
      );
    },
  };
}
const turn = () => new Promise((done) => setImmediate(done));

test('the store draws the coarser tile while a finer one is on its way, and asks no further below the finest', async () => {
  const source = fakeSource(4);
  const length = kBins * 2 ** 8;
  const store = new TileStore(source, 0, length, () => {});
  const frame = async (level, from, to) => {
    store.begin();
    const pieces = store.pieces(5, level, from, to);
    store.end(level, from, to, [5]);
    await turn();
    return pieces;
  };
  assert.equal(store.topLevel, 8);
  assert.deepEqual(await frame(8, 0, length), []);
  assert.equal((await frame(7, 0, length / 2))[0].tile.level, 8, 'stands in');
  assert.equal((await frame(7, 0, length / 2))[0].tile.level, 7);
  await frame(2, 0, 100);
  const before = source.asked.length;
  const [piece] = await frame(2, 0, 100);
  assert.equal(piece.tile.level, 4);
  await frame(2, 0, 100);
  assert.ok(
    source.asked.slice(before).every(([level]) => level !== 2),
    JSON.stringify(source.asked),
  );
});
