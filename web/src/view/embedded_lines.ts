// The lines of a self-contained page's run (src/view/page/lines.h). A tile of bins is one that tacho stored; where it
// stored none its server would send the slices, and so does this.

import type { Columns, Packed } from './packed';
import type { Track } from './source';
import {
  emptyTile,
  laneOffsets,
  tileSpan,
  type Common,
  type CounterTile,
  type DensityTile,
  type SlicesTile,
  type Tile,
} from './tile';
import { kNoRow } from './tile_store';

export interface LineHeader {
  line: number;
  tiles?: { count: number; entries: number; columns: Columns };
  slices?: { count: number; columns: Columns; rows: Record<string, { count: number; columns: Columns }> };
  readings?: { count: number; columns: Columns };
  /** Of a queue: the number of its device in this run. */
  device?: number;
  /** Of a group: the lines whose work it shows. */
  below?: number[];
}

/** The slices of a line, by start. */
export interface Slices {
  count: number;
  start: Float64Array;
  /** -1 = not ended. */
  duration: Float64Array;
  name: Uint32Array;
  lane: Uint16Array;
  flags: Uint16Array;
  table: Uint8Array;
  /** Number of the row in its table, and number among those of its table on this line. */
  row: Float64Array;
  rank: Uint32Array;
  /** Places of slices by (lane, start), and where each lane begins in that. */
  order: Uint32Array;
  lanesAt: Uint32Array;
}

export interface Line {
  track: Track;
  header: LineHeader;
  slices: Slices | null;
  bins: Pick<DensityTile, 'lane' | 'bin' | 'cover' | 'events' | 'name'> | null;
  /** Where the bins of a tile lie, by level and index. */
  tiles: Map<string, [number, number]>;
  readings: { start: Float64Array; value: Float64Array } | null;
}

/** What is drawn of a slice. */
interface Piece {
  start: number;
  duration: number;
  table: number;
  row: bigint;
  name: number;
  lane: number;
  flags: number;
}

export const rowId = (table: number, row: number): bigint => (BigInt(table) << 48n) | BigInt(row);

function readSlices(
  packed: Packed,
  { count, columns, rows }: NonNullable<LineHeader['slices']>,
  lanes: number,
): Slices {
  const table = Uint8Array.from(packed.integers(columns, 'table', count));
  const lane = Uint16Array.from(packed.integers(columns, 'lane', count));
  const numbers = new Map(
    Object.entries(rows).map(([of, each]) => [Number(of), packed.differences(each.columns, 'row', each.count)]),
  );
  const row = new Float64Array(count);
  const rank = new Uint32Array(count);
  const seen = new Uint32Array(256);
  const lanesAt = laneOffsets(lane, lanes);
  const order = new Uint32Array(count);
  const next = lanesAt.slice();
  for (let i = 0; i < count; ++i) {
    rank[i] = seen[table[i]]++;
    row[i] = numbers.get(table[i])?.[rank[i]] ?? 0;
    order[next[lane[i]]++] = i;
  }
  const duration = packed.integers(columns, 'duration', count);
  for (let i = 0; i < count; ++i) --duration[i];
  return {
    count,
    start: packed.differences(columns, 'start', count),
    duration,
    name: Uint32Array.from(packed.integers(columns, 'name', count)),
    lane,
    flags: Uint16Array.from(packed.integers(columns, 'flags', count)),
    table,
    row,
    rank,
    order,
    lanesAt,
  };
}

function readLine(packed: Packed, header: LineHeader, track: Track): Line {
  const line: Line = { track, header, slices: null, bins: null, tiles: new Map(), readings: null };
  if (header.slices !== undefined) line.slices = readSlices(packed, header.slices, Math.max(1, track.lanes));
  if (header.tiles !== undefined) {
    const { count, entries, columns } = header.tiles;
    const [level, index, size] = ['level', 'index', 'size'].map((name) => packed.integers(columns, name, count));
    for (let i = 0, at = 0; i < count; ++i) line.tiles.set(`${level[i]} ${index[i]}`, [at, (at += size[i])]);
    line.bins = {
      lane: Uint16Array.from(packed.integers(columns, 'lane', entries)),
      bin: Uint16Array.from(packed.differences(columns, 'bin', entries)),
      cover: Uint16Array.from(packed.integers(columns, 'cover', entries)),
      events: Uint32Array.from(packed.integers(columns, 'events', entries)),
      name: Uint32Array.from(packed.integers(columns, 'name', entries)),
    };
  }
  if (header.readings !== undefined) {
    const { count, columns } = header.readings;
    line.readings = {
      start: packed.differences(columns, 'start', count),
      value: packed.doubles(columns, 'value', count),
    };
  }
  return line;
}

export class Lines {
  private readonly lines = new Map<number, Line>();
  /** Tables of what devices do. */
  readonly work: ReadonlySet<number>;

  constructor(
    packed: Packed,
    headers: LineHeader[],
    tracks: Track[],
    tables: string[],
    private readonly length: number,
  ) {
    const byId = new Map(tracks.map((track) => [track.id, track]));
    for (const header of headers) {
      const track = byId.get(header.line);
      if (track !== undefined) this.lines.set(header.line, readLine(packed, header, track));
    }
    this.work = new Set(['dispatch', 'copy', 'fill'].map((each) => tables.indexOf(each)));
  }

  /** The lines whose slices are rows: not those of stacks over time, which are made of samples. */
  *withSlices(): Generator<{ line: Line; slices: Slices }> {
    for (const line of this.lines.values())
      if (line.slices !== null && line.track.kind !== 'stack') yield { line, slices: line.slices };
  }

  tile(track: number, level: number, index: number): Tile {
    const line = this.lines.get(track);
    const common = { track, level, index, lanes: Math.max(1, line?.track.lanes ?? 1), provisional: false };
    if (line === undefined) return emptyTile(common);
    const stored = storedTile(line, common);
    if (stored !== null) return stored;
    const [from, to] = [index * tileSpan(level), (index + 1) * tileSpan(level)];
    if (line.readings !== null) return counterTile(line.readings, common);
    if (line.slices !== null) return slicesTile(common, pieces(line.slices, from, to));
    if (line.header.below !== undefined) return slicesTile(common, this.stretches(line.header.below, from, to));
    // Of a line without its slices there is nothing finer than the finest bins.
    for (let up = level + 1, at = Math.floor(index / 2); up < 64; ++up, at = Math.floor(at / 2)) {
      const coarser = storedTile(line, { ...common, level: up, index: at });
      if (coarser !== null) return { ...coarser, finest: true };
    }
    return emptyTile(common);
  }

  /** Work of several lines as stretches that do not overlap; each belongs to what began first. */
  private stretches(below: number[], from: number, to: number): Piece[] {
    const all = below.flatMap((id) => {
      const line = this.lines.get(id);
      if (line === undefined || line.slices === null) return [];
      const queue = line.track.kind === 'queue';
      return pieces(line.slices, from, to).filter((each) => (queue ? this.work.has(each.table) : each.lane === 0));
    });
    const endOf = (each: Piece): number => (each.duration < 0 ? Infinity : each.start + each.duration);
    all.sort(
      (a, b) => a.start - b.start || (endOf(b) > endOf(a) ? 1 : endOf(b) < endOf(a) ? -1 : a.row < b.row ? -1 : 1),
    );
    const found: Piece[] = [];
    let until = -Infinity;
    for (const each of all) {
      const start = Math.max(each.start, until);
      const end = Math.min(endOf(each), this.length);
      if (until > each.start && end <= until) continue;
      until = Math.max(until, end);
      found.push({ ...each, start, duration: Math.max(end - start, 0), row: BigInt(kNoRow), lane: 0, flags: 0 });
    }
    return found;
  }
}

function storedTile(line: Line, common: Common): DensityTile | null {
  const place = line.tiles.get(`${common.level} ${common.index}`);
  if (place === undefined || line.bins === null) return null;
  const { lane, bin, cover, events, name } = line.bins;
  const lanes = lane.subarray(...place);
  return {
    ...common,
    kind: 'density',
    bytes: 32 + lanes.length * 14,
    lane: lanes,
    bin: bin.subarray(...place),
    cover: cover.subarray(...place),
    events: events.subarray(...place),
    name: name.subarray(...place),
    lanesAt: laneOffsets(lanes, common.lanes),
  };
}

/** The slices of a line that overlap [from, to), by (lane, start). */
function pieces(slices: Slices, from: number, to: number): Piece[] {
  const { order, lanesAt, start, duration, name, lane, flags, table, row } = slices;
  const found: Piece[] = [];
  for (let each = 0; each + 1 < lanesAt.length; ++each) {
    const [first, stop] = [lanesAt[each], lanesAt[each + 1]];
    let at = first;
    for (let end = stop; at < end;) {
      const middle = (at + end) >> 1;
      if (start[order[middle]] < from) at = middle + 1;
      else end = middle;
    }
    // Slices of a lane follow each other: few that began before reach into it.
    const reaches = (i: number): boolean => duration[i] < 0 || start[i] + duration[i] > from;
    while (at > first && reaches(order[at - 1])) --at;
    for (; at < stop && start[order[at]] < to; ++at) {
      const i = order[at];
      const id = rowId(table[i], row[i]);
      const drawn = { name: name[i], lane: lane[i], flags: flags[i] };
      found.push({ start: start[i], duration: duration[i], table: table[i], row: id, ...drawn });
    }
  }
  return found;
}

function slicesTile(common: Common, list: Piece[]): Tile {
  if (list.length === 0) return emptyTile(common);
  const lane = Uint16Array.from(list, (each) => each.lane);
  const tile: SlicesTile = {
    ...common,
    kind: 'slices',
    bytes: 32 + list.length * 32,
    start: Float64Array.from(list, (each) => each.start),
    duration: Float64Array.from(list, (each) => each.duration),
    row: BigUint64Array.from(list, (each) => each.row),
    name: Uint32Array.from(list, (each) => each.name),
    lane,
    flags: Uint16Array.from(list, (each) => each.flags),
    lanesAt: laneOffsets(lane, common.lanes),
  };
  return tile;
}

function counterTile(readings: NonNullable<Line['readings']>, common: Common): CounterTile {
  const wide = 2 ** common.level;
  const from = common.index * tileSpan(common.level);
  const bins: { bin: number; min: number; max: number; last: number }[] = [];
  let before = NaN;
  for (let i = 0; i < readings.start.length && readings.start[i] < from + tileSpan(common.level); ++i) {
    const value = readings.value[i];
    const bin = Math.floor((readings.start[i] - from) / wide);
    const known = bins[bins.length - 1];
    if (bin < 0) before = value;
    else if (known?.bin !== bin) bins.push({ bin, min: value, max: value, last: value });
    else Object.assign(known, { min: Math.min(known.min, value), max: Math.max(known.max, value), last: value });
  }
  return {
    ...common,
    kind: 'counter',
    lanes: 1,
    bytes: 40 + bins.length * 26,
    bin: Uint16Array.from(bins, (each) => each.bin),
    min: Float64Array.from(bins, (each) => each.min),
    max: Float64Array.from(bins, (each) => each.max),
    last: Float64Array.from(bins, (each) => each.last),
    before,
  };
}
