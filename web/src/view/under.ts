// What lies under the mouse.

import type { Look, Under } from './look';
import { counterColumns, lowerTime } from './paint';
import { rowUnder, topOf } from './rows';
import { kBins, tileSpan } from './tile';
import type { TileStore } from './tile_store';

/** What lies under a point of the timeline; null below its rows. */
export function findUnder(look: Look, tiles: TileStore, x: number, y: number): Under | null {
  const rows = look.shown.rows;
  const row = rowUnder(rows, look.shown.pinned, y, look.scroll);
  if (row === undefined) return null;
  const at = look.timeAt(x);
  if (row.lanes === 0) return { what: 'row', row, at };
  const wide = Math.max(1, Math.round(look.width * look.ratio));
  const perPixel = (look.to - look.from) / wide;
  const slack = ((look.to - look.from) / look.width) * 2;
  const level = tiles.levelFor(perPixel);
  const pieces = tiles.pieces(row.track.id, level, look.from, look.to);
  if (row.what === 'counter') {
    const column = Math.floor(x * look.ratio);
    const columns = counterColumns(pieces, { from: look.from, perPixel, width: wide });
    const value = columns.value[column];
    return value === undefined || Number.isNaN(value)
      ? { what: 'row', row, at }
      : { what: 'counter', row, at, value, min: columns.min[column], max: columns.max[column] };
  }
  const lane = row.what === 'group' ? 0 : Math.floor((y - topOf(row, look.scroll) - row.first) / row.lane);
  if (lane < 0 || lane >= row.lanes) return { what: 'row', row, at };
  let best: Under | null = null;
  let nearest = Infinity;
  for (const { tile, from, to } of pieces) {
    if (at < from - slack || at >= to + slack) continue;
    if (tile.kind === 'slices' && lane < tile.lanes) {
      const [begin, stop] = [tile.lanesAt[lane], tile.lanesAt[lane + 1]];
      for (let i = lowerTime(tile.start, begin, stop, at + slack) - 1; i >= begin; --i) {
        const s0 = tile.start[i];
        const s1 = tile.duration[i] < 0 ? look.length : s0 + tile.duration[i];
        const distance = at < s0 ? s0 - at : at > s1 ? at - s1 : 0;
        if (distance <= slack && distance < nearest) {
          nearest = distance;
          best =
            row.what === 'group' // stretches of work, which are no slices
              ? { what: 'density', row, lane, from: s0, to: s1, events: 1, name: tile.name[i], cover: 1 }
              : {
                  what: 'slice',
                  row,
                  lane,
                  index: String(tile.row[i]),
                  name: tile.name[i],
                  start: s0,
                  duration: tile.duration[i],
                  flags: tile.flags[i],
                };
        }
        if (s1 < at - slack) break;
      }
    } else if (tile.kind === 'density' && lane < tile.lanes) {
      const binSpan = 2 ** tile.level;
      const begin = tile.index * tileSpan(tile.level);
      const wanted = Math.floor((at - begin) / binSpan);
      for (let i = tile.lanesAt[lane]; i < tile.lanesAt[lane + 1]; ++i) {
        const distance = Math.abs(tile.bin[i] - wanted) * binSpan;
        if (distance > Math.max(slack, 0) || distance >= nearest || tile.bin[i] >= kBins) continue;
        nearest = distance;
        const a = begin + tile.bin[i] * binSpan;
        best = {
          what: 'density',
          row,
          lane,
          from: a,
          to: a + binSpan,
          events: tile.events[i],
          name: tile.name[i],
          cover: tile.cover[i] / 65535,
        };
      }
    }
  }
  return best ?? { what: 'row', row, at };
}
