// Tiles: what one track holds in one stretch of time at one resolution. A bin of level L is 2^L ns wide, a tile has 512.

export const kBins = 512;

/** Width of a tile of this level in ns. */
export const tileSpan = (level: number): number => kBins * 2 ** level;

export interface Common {
  track: number;
  level: number;
  index: number;
  lanes: number;
  /** The index of the trace is still being built: ask again. */
  provisional: boolean;
}

export interface EmptyTile extends Common {
  kind: 'empty';
  bytes: number;
}

/** Per (lane, bin) with anything in it, sorted. */
export interface DensityTile extends Common {
  kind: 'density';
  bytes: number;
  lane: Uint16Array;
  bin: Uint16Array;
  /** Part of the bin that is covered, of 65535; at least 1. */
  cover: Uint16Array;
  events: Uint32Array;
  name: Uint32Array;
  /** Where each lane's entries begin; one more than lanes. */
  lanesAt: Uint32Array;
  /** The source has nothing finer of its time. */
  finest?: boolean;
}

/** Every slice that overlaps the tile, by (lane, start). */
export interface SlicesTile extends Common {
  kind: 'slices';
  bytes: number;
  start: Float64Array;
  /** -1 = not ended, 0 = a point. */
  duration: Float64Array;
  row: BigUint64Array;
  name: Uint32Array;
  lane: Uint16Array;
  flags: Uint16Array;
  lanesAt: Uint32Array;
}

/** Per bin with readings. */
export interface CounterTile extends Common {
  kind: 'counter';
  bytes: number;
  bin: Uint16Array;
  min: Float64Array;
  max: Float64Array;
  last: Float64Array;
  /** The value in force where the tile begins; NaN = none. */
  before: number;
}

export type Tile = EmptyTile | DensityTile | SlicesTile | CounterTile;

export const kMark = 1;
export const kFailed = 2;
export const kGraphNode = 4;
export const kUnfinished = 8;

export const emptyTile = (common: Common): EmptyTile => ({ ...common, kind: 'empty', bytes: 32 });

const kMagic = 0x4c495454; // 'TTIL'
const padded = (bytes: number): number => (bytes + 7) & ~7;

/** Where the entries of each lane begin in a sorted column of lanes. */
export function laneOffsets(lane: Uint16Array, lanes: number): Uint32Array {
  const at = new Uint32Array(lanes + 1);
  for (const each of lane) ++at[Math.min(each, lanes - 1) + 1];
  for (let i = 0; i < lanes; ++i) at[i + 1] += at[i];
  return at;
}

/** Decodes the answer of /api/tiles; throws a sentence when it is not one. The columns are views into the buffer. */
export function decodeTiles(buffer: ArrayBuffer, level: number, index: number): Tile[] {
  const view = new DataView(buffer);
  const tiles: Tile[] = [];
  for (let at = 0; at < buffer.byteLength;) {
    if (at + 32 > buffer.byteLength || view.getUint32(at, true) !== kMagic)
      throw new Error('The server sent something that is no tile.');
    const track = view.getUint32(at + 4, true);
    const kind = view.getUint8(at + 8);
    const lanes = Math.max(1, view.getUint16(at + 10, true));
    const count = view.getUint32(at + 12, true);
    const bytes = view.getUint32(at + 16, true);
    const provisional = (view.getUint32(at + 20, true) & 1) !== 0;
    if (bytes < 32 || at + bytes > buffer.byteLength) throw new Error('The server sent a tile that is cut off.');
    const common = { track, level, index, lanes, provisional };
    const sized = { ...common, bytes };
    let offset = at + 32;
    const end = at + bytes;
    const column = <T>(
      Type: { new (buffer: ArrayBuffer, offset: number, length: number): T; BYTES_PER_ELEMENT: number },
      length = count,
    ): T => {
      if (offset + length * Type.BYTES_PER_ELEMENT > end)
        throw new Error('The server sent a tile whose columns are cut off.');
      const made = new Type(buffer, offset, length);
      offset += padded(length * Type.BYTES_PER_ELEMENT);
      return made;
    };
    if (kind === 1) {
      const [lane, bin, cover, events, name] = [
        column(Uint16Array),
        column(Uint16Array),
        column(Uint16Array),
        column(Uint32Array),
        column(Uint32Array),
      ];
      tiles.push({ ...sized, kind: 'density', lane, bin, cover, events, name, lanesAt: laneOffsets(lane, lanes) });
    } else if (kind === 2) {
      const [start, duration, row] = [column(Float64Array), column(Float64Array), column(BigUint64Array)];
      const [name, lane, flags] = [column(Uint32Array), column(Uint16Array), column(Uint16Array)];
      tiles.push({
        ...sized,
        kind: 'slices',
        start,
        duration,
        row,
        name,
        lane,
        flags,
        lanesAt: laneOffsets(lane, lanes),
      });
    } else if (kind === 3) {
      const before = column(Float64Array, 1)[0];
      const [bin, min, max, last] = [
        column(Uint16Array),
        column(Float64Array),
        column(Float64Array),
        column(Float64Array),
      ];
      tiles.push({ ...sized, kind: 'counter', bin, min, max, last, before });
    } else {
      tiles.push(emptyTile(common));
    }
    at += bytes;
  }
  return tiles;
}
