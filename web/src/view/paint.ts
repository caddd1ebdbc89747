// Lanes, counters and densities as pixels. A lane is one row of pixel columns, made from tiles and then repeated over the
// lane's height: the cost of a frame depends on the columns shown, not on the slices.
//
// A column's strength is the part of its time that is covered; every slice, however short, leaves its strongest column
// visible (kLeast), and a column that no slice touches stays empty. Its colour is the name with the most time in it.

import { blend, type Pixel, type Theme } from './colour';
import type { Piece } from './tile_store';
import type { Row } from './rows';
import { kBins, kFailed, tileSpan, type CounterTile } from './tile';

/** Alpha (of 256) of a column that is hardly covered, and what full cover adds to it. */
const kLeast = 120;
const kFaint = 4;

export interface Scale {
  from: number;
  /** ns per pixel of the canvas. */
  perPixel: number;
  width: number;
}

export interface Label {
  x0: number;
  x1: number;
  name: number;
  flags: number;
  /** Of columns that a name covers, not of one slice. */
  dense?: boolean;
}

/** How names become colours in a lane. */
export interface Ink {
  theme: Theme;
  hue(name: number): number;
  /** Names that stay in colour while all others fade; null = all. */
  chosen: ReadonlySet<number> | null;
}

export class Raster {
  readonly row: Uint32Array;
  private readonly cover: Float32Array;
  private readonly best: Float32Array;
  private readonly name: Uint32Array;
  /** 1 = touched, 2 = a slice begins here, 4 = failed. */
  private readonly mark: Uint8Array;
  // The names within the column at hand.
  private readonly tallyName = new Uint32Array(64);
  private readonly tallyTime = new Float64Array(64);
  private tallied = 0;
  private at = -1;
  /** The lane just made has a failed call. */
  anyFailed = false;

  constructor(readonly width: number) {
    this.row = new Uint32Array(width);
    this.cover = new Float32Array(width);
    this.best = new Float32Array(width);
    this.name = new Uint32Array(width);
    this.mark = new Uint8Array(width);
  }

  private settle(): void {
    const x = this.at;
    for (let i = 0; i < this.tallied; ++i)
      if (this.tallyTime[i] > this.best[x]) {
        this.best[x] = this.tallyTime[i];
        this.name[x] = this.tallyName[i];
      }
    this.tallied = 0;
  }
  private put(x: number, part: number, name: number): void {
    if (x !== this.at) {
      if (this.tallied > 0) this.settle();
      this.at = x;
    }
    this.cover[x] += part;
    for (let i = 0; i < this.tallied; ++i)
      if (this.tallyName[i] === name) {
        this.tallyTime[i] += part;
        return;
      }
    if (this.tallied < 64) {
      this.tallyName[this.tallied] = name;
      this.tallyTime[this.tallied++] = part + 1e-9;
    }
  }

  /** Spreads `strength` (0..1 of each column) over [x0, x1), of which some lies in the raster. */
  private spread(x0: number, x1: number, strength: number, name: number): void {
    const a = Math.max(0, x0);
    const b = Math.min(this.width, x1);
    if (b <= a) return;
    const first = Math.floor(a);
    const last = Math.ceil(b) - 1;
    if (first === last) {
      this.put(first, (b - a) * strength, name);
      return;
    }
    this.put(first, (first + 1 - a) * strength, name);
    if (last - first > 1) {
      if (strength === 1) {
        this.settle();
        this.at = last - 1;
        this.cover.fill(1, first + 1, last);
        this.best.fill(1, first + 1, last);
        this.name.fill(name, first + 1, last);
        this.mark.fill(1, first + 1, last);
      } else {
        for (let x = first + 1; x < last; ++x) this.put(x, strength, name);
      }
    }
    this.put(last, (b - last) * strength, name);
  }
  /** The column that holds most of [x0, x1): what is there is seen there, however short it is. */
  private touch(x0: number, x1: number): number {
    const x = Math.floor(x0);
    const column = x1 - x0 <= 1 && x1 > x + 1 && x1 - (x + 1) > x + 1 - x0 ? x + 1 : x;
    if (column >= 0 && column < this.width) this.mark[column] |= 1;
    return column;
  }

  /** Makes `row` from the pieces of one lane over its ground (columns of colour `under`, and the grid); `labels` gets what is wide enough for one. */
  lane(
    pieces: Piece[],
    lane: number,
    scale: Scale,
    under: Pixel,
    ground: Uint32Array,
    ink: Ink,
    end: number,
    labels: Label[] | null,
    leastLabel: number,
  ): boolean {
    const { from, perPixel } = scale;
    const width = this.width;
    this.cover.fill(0);
    this.best.fill(0);
    this.mark.fill(0);
    this.tallied = 0;
    this.at = -1;
    this.anyFailed = false;
    const to = from + perPixel * width;
    let any = false;
    // Bins in a row that are covered from end to end and have one name: wide enough, they have a label as a slice has.
    let run: Label | null = null;
    const endRun = (): void => {
      if (run !== null && labels !== null) {
        const [x0, x1] = [Math.max(0, run.x0), Math.min(width, run.x1)];
        const before = labels[labels.length - 1];
        // What goes on from one tile to the next has one label.
        if (before !== undefined && before.name === run.name && before.x1 >= x0 - 0.5)
          before.x1 = Math.max(before.x1, x1);
        else if (x1 - x0 >= leastLabel) labels.push({ x0, x1, name: run.name, flags: 0, dense: true });
      }
      run = null;
    };
    for (const piece of pieces) {
      const tile = piece.tile;
      if (tile.kind === 'density') {
        if (lane >= tile.lanes) continue;
        const binSpan = 2 ** tile.level;
        const begin = tile.index * tileSpan(tile.level);
        const binWidth = binSpan / perPixel;
        const x = (begin - from) / perPixel;
        const low = Math.max(piece.from, from);
        const high = Math.min(piece.to, to);
        let i = lowerBin(tile.bin, tile.lanesAt[lane], tile.lanesAt[lane + 1], Math.floor((low - begin) / binSpan));
        for (; i < tile.lanesAt[lane + 1]; ++i) {
          const bin = tile.bin[i];
          let x0 = x + bin * binWidth;
          if (begin + bin * binSpan >= high) break;
          let x1 = x0 + binWidth;
          // A coarser tile stands for a part of its time only.
          if (begin + bin * binSpan < piece.from) x0 = (piece.from - from) / perPixel;
          if (begin + (bin + 1) * binSpan > piece.to) x1 = (piece.to - from) / perPixel;
          if (x1 <= 0 || x0 >= width) continue;
          any = true;
          const cover = tile.cover[i];
          if (labels !== null) {
            if (run !== null && cover === 65535 && run.name === tile.name[i] && Math.abs(run.x1 - x0) < 0.01)
              run.x1 = x1;
            else {
              endRun();
              if (cover === 65535) run = { x0, x1, name: tile.name[i], flags: 0 };
            }
          }
          this.spread(x0, x1, cover === 65535 ? 1 : cover / 65535, tile.name[i]);
          if (binWidth <= 1) this.touch(x0, x1);
          else
            for (let column = Math.max(0, Math.floor(x0)); column < Math.min(width, x1); ++column)
              this.mark[column] |= 1;
        }
      } else if (tile.kind === 'slices') {
        endRun();
        if (lane >= tile.lanes) continue;
        const { start, duration } = tile;
        const low = Math.max(piece.from, from);
        const high = Math.min(piece.to, to);
        const begin = tile.lanesAt[lane];
        const stop = tile.lanesAt[lane + 1];
        // Slices of a lane follow each other: the last that begins before the stretch may reach into it.
        let i = lowerTime(start, begin, stop, low);
        while (i > begin && (duration[i - 1] < 0 || start[i - 1] + duration[i - 1] > low)) --i;
        for (; i < stop && start[i] < high; ++i) {
          const open = duration[i] < 0;
          const s0 = start[i];
          const s1 = open ? Math.max(end, s0) : s0 + duration[i];
          const x0 = (Math.max(s0, piece.from) - from) / perPixel;
          const x1 = (Math.min(s1, piece.to) - from) / perPixel;
          if (x1 < 0 || x0 >= width) continue;
          any = true;
          const wide = (s1 - s0) / perPixel;
          if (duration[i] === 0) {
            const column = Math.floor((s0 - from) / perPixel);
            if (column >= 0 && column < width) {
              this.put(column, 0.5, tile.name[i]);
              this.mark[column] |= 1;
            }
          } else if (x1 > x0) {
            this.spread(x0, x1, 1, tile.name[i]);
            const column = this.touch(x0, x1);
            if (labels !== null && wide >= 4 && s0 >= piece.from && column >= 0 && column < width)
              this.mark[column] |= 2;
          }
          if ((tile.flags[i] & kFailed) !== 0) {
            this.anyFailed = true;
            const a = Math.max(0, Math.floor(x0));
            const b = Math.min(width - 1, Math.max(a, Math.ceil(x1) - 1));
            for (let column = a; column <= b; ++column) this.mark[column] |= 4;
          }
          if (labels !== null && wide >= leastLabel) {
            const before = labels[labels.length - 1];
            const l0 = Math.max(0, (s0 - from) / perPixel);
            const l1 = Math.min(width, (s1 - from) / perPixel);
            // The pieces of a slice that spans tiles have one label.
            if (before !== undefined && before.name === tile.name[i] && before.dense === true && before.x1 >= l0 - 0.5)
              before.x1 = Math.max(before.x1, l1);
            else if (before === undefined || before.x0 !== l0 || before.name !== tile.name[i])
              labels.push({ x0: l0, x1: l1, name: tile.name[i], flags: tile.flags[i] });
          }
        }
      }
    }
    endRun();
    this.row.set(ground);
    if (!any) return false;
    if (this.tallied > 0) this.settle();
    const { theme, chosen } = ink;
    let lastName = -1;
    let colour = theme.unknown;
    for (let x = 0; x < width; ++x) {
      const cover = Math.min(1, this.cover[x]);
      const mark = this.mark[x];
      if (cover === 0 && mark === 0) continue;
      const name = this.name[x];
      if (name !== lastName) {
        lastName = name;
        const hue = ink.hue(name);
        colour = chosen !== null && !chosen.has(name) ? theme.faded : hue < 0 ? theme.unknown : theme.names[hue];
      }
      let alpha = (mark & 1) !== 0 ? kLeast + Math.round((256 - kLeast) * cover) : Math.round(256 * cover);
      if (alpha < kFaint) continue;
      if ((mark & 2) !== 0) alpha = Math.round(alpha * 0.62);
      this.row[x] = blend(under, colour, alpha);
    }
    return true;
  }

  /** Whether a column of the lane just made has a failed call. */
  failed(x: number): boolean {
    return (this.mark[x] & 4) !== 0;
  }
}

function lowerBin(bin: Uint16Array, from: number, to: number, least: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bin[middle] < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first of [from, to) that begins at `time` or later. */
export function lowerTime(start: Float64Array, from: number, to: number, time: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Least, greatest and last value of a counter in each column, and the value in force; NaN where there is none. */
export interface CounterColumns {
  min: Float64Array;
  max: Float64Array;
  value: Float64Array;
}

export function counterColumns(pieces: Piece[], scale: Scale): CounterColumns {
  const { from, perPixel, width } = scale;
  const min = new Float64Array(width).fill(NaN);
  const max = new Float64Array(width).fill(NaN);
  const value = new Float64Array(width).fill(NaN);
  let held = NaN;
  let filled = 0;
  const hold = (x: number): void => {
    for (; filled < x; ++filled) {
      if (Number.isNaN(value[filled])) value[filled] = held;
      if (Number.isNaN(min[filled])) min[filled] = max[filled] = held;
    }
  };
  let first = true;
  for (const piece of pieces) {
    if (piece.tile.kind !== 'counter') continue;
    const tile: CounterTile = piece.tile;
    const binSpan = 2 ** tile.level;
    const begin = tile.index * kBins * binSpan;
    if (first) {
      held = tile.before;
      first = false;
    }
    for (let i = 0; i < tile.bin.length; ++i) {
      const at = begin + tile.bin[i] * binSpan;
      if (at >= piece.to) break;
      const x = Math.floor((at + binSpan / 2 - from) / perPixel);
      if (at + binSpan <= piece.from || x < 0) {
        held = tile.last[i];
        continue;
      }
      if (x >= width) break;
      hold(x);
      if (Number.isNaN(min[x]) || filled <= x) {
        const before = Number.isNaN(held) ? tile.min[i] : held;
        min[x] = Number.isNaN(min[x]) ? Math.min(before, tile.min[i]) : Math.min(min[x], tile.min[i]);
        max[x] = Number.isNaN(max[x]) ? Math.max(before, tile.max[i]) : Math.max(max[x], tile.max[i]);
      }
      value[x] = tile.last[i];
      held = tile.last[i];
    }
  }
  if (!first) hold(width);
  return { min, max, value };
}

/** A counter as an area with its line: columns of `pixels`, which are `width` wide, from y0 on. */
export function paintCounter(
  row: Row,
  columns: CounterColumns,
  pixels: Uint32Array,
  y0: number,
  rowHeight: number,
  width: number,
  height: number,
  ratio: number,
  theme: Theme,
): void {
  const low = Math.min(0, row.track.min ?? 0);
  const high = Math.max(row.track.max ?? 1, low + 1e-12);
  const top = y0 + Math.round(4 * ratio);
  const bottom = y0 + rowHeight - Math.round(3 * ratio);
  const yOf = (value: number): number => Math.round(bottom - ((value - low) / (high - low)) * (bottom - top));
  const area = blend(theme.lane, theme.accentPixel, 58);
  const line = blend(theme.lane, theme.accentPixel, 220);
  const thick = Math.max(1, Math.round(ratio));
  const base = yOf(0);
  for (let x = 0; x < width; ++x) {
    const value = columns.value[x];
    if (Number.isNaN(value)) continue;
    const a = Math.max(top, Math.min(bottom, yOf(columns.max[x])));
    const b = Math.max(top, Math.min(bottom, yOf(columns.min[x])));
    const put = (from: number, to: number, colour: number): void => {
      for (let y = Math.max(0, from); y < Math.min(height, to); ++y) pixels[y * width + x] = colour;
    };
    put(Math.min(base, b), Math.max(base, b), area);
    put(a, b + thick, line);
  }
}
