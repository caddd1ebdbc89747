// The source of the self-contained page: the run's columns lie compressed in the page, tiles and tables are made here.

import { SourceError, type Alignment, type DeviceTime, type Diff, type Entry, type Flame, type FoundName, type Hit, type KernelDetails, type Overview, type QueryResult, type Schema, type SearchResult, type SliceDetails, type SliceLink, type Source, type SpanTables, type Track, type ViewDocument } from './source';
import { kBins, laneOffsets, tileSpan, type CounterTile, type DensityTile, type Tile } from './tile';
import { bytes as shownBytes } from './units';

type Place = [number, number];

interface PartHeader {
  table: number;
  count: number;
  columns: Record<string, Place>;
  cause_table?: number;
  extra?: { title: string; unit: string; column: Place }[];
}
interface TrackHeader {
  track: number;
  kind: 'slices' | 'counter' | 'density';
  parts?: PartHeader[];
  level?: number;
  count?: number;
  columns?: Record<string, Place>;
}
interface Header {
  document: ViewDocument;
  overview: Overview;
  flame?: Flame;
  names: { texts: string[]; colors: number[]; kinds: string[] };
  tables: string[];
  shapes: [string, string][][];
  tracks: TrackHeader[];
  /** Further views by name; {"error"} where there is nothing to see. */
  extras?: Record<string, unknown>;
}

/** The slices of one table on one track, by start. */
interface Part {
  track: number;
  table: number;
  count: number;
  start: Float64Array;
  duration: Float64Array;
  name: Uint32Array;
  lane: Uint16Array;
  flags: Uint16Array;
  row: Float64Array;
  shape: Uint32Array;
  /** 1 + row number in causeTable of the call that caused it; 0 = none. */
  cause: Float64Array;
  causeTable: number;
  extra: { title: string; unit: string; values: Float64Array }[];
}

/** All slices of a track, by (lane, start). */
interface Slices {
  kind: 'slices';
  lanes: number;
  lanesAt: Uint32Array;
  start: Float64Array;
  duration: Float64Array;
  name: Uint32Array;
  flags: Uint16Array;
  row: BigUint64Array;
}
interface Counter {
  kind: 'counter';
  start: Float64Array;
  value: Float64Array;
}
interface Density {
  kind: 'density';
  level: number;
  lanes: number;
  lanesAt: Uint32Array;
  bin: Float64Array;
  cover: Uint16Array;
  events: Uint32Array;
  name: Uint32Array;
}

const kMostSlices = 4096;
const kMostHits = 1000;
const kMostLaunches = 4000;

/** Unsigned LEB128 numbers. Values up to 2^53. */
function varints(from: Uint8Array, place: Place | undefined, count: number): Float64Array {
  const values = new Float64Array(count);
  if (place === undefined) return values;
  let at = place[0];
  const end = place[0] + place[1];
  for (let i = 0; i < count; ++i) {
    let value = 0;
    let factor = 1;
    for (;;) {
      if (at >= end) throw new Error('The data in this page is damaged: a column ends early.');
      const byte = from[at++];
      value += (byte & 127) * factor;
      if (byte < 128) break;
      factor *= 128;
    }
    values[i] = value;
  }
  return values;
}
const unzigzag = (value: number): number => (value % 2 === 0 ? value / 2 : -(value + 1) / 2);
function differences(values: Float64Array): Float64Array {
  let sum = 0;
  for (let i = 0; i < values.length; ++i) values[i] = sum += unzigzag(values[i]);
  return values;
}

async function inflate(text: string): Promise<Uint8Array> {
  const packed = atob(text.trim());
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; ++i) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A lane of a density tile under construction: slices come by start. */
class Binner {
  readonly lane: number[] = [];
  readonly bin: number[] = [];
  readonly cover: number[] = [];
  readonly events: number[] = [];
  readonly name: number[] = [];
  private at = -1;
  private covered = 0;
  private count = 0;
  private readonly tally = new Map<number, number>();

  constructor(
    private readonly begin: number,
    private readonly binSpan: number,
    private current: number,
  ) {}

  private flush(): void {
    if (this.at < 0) return;
    let best = 0;
    let most = -1;
    for (const [name, time] of this.tally)
      if (time > most) {
        most = time;
        best = name;
      }
    this.lane.push(this.current);
    this.bin.push(this.at);
    const part = this.covered / this.binSpan;
    this.cover.push(part >= 1 ? 65535 : Math.max(1, Math.min(65534, Math.floor(part * 65535))));
    this.events.push(this.count);
    this.name.push(best);
    this.at = -1;
    this.covered = 0;
    this.count = 0;
    this.tally.clear();
  }
  next(lane: number): void {
    this.flush();
    this.current = lane;
  }
  add(start: number, stop: number, name: number): void {
    const first = Math.max(0, Math.floor((start - this.begin) / this.binSpan));
    const last = Math.min(kBins - 1, stop > start ? Math.ceil((stop - this.begin) / this.binSpan) - 1 : first);
    for (let bin = first; bin <= last; ++bin) {
      if (bin !== this.at) {
        this.flush();
        this.at = bin;
      }
      const a = this.begin + bin * this.binSpan;
      const time = Math.max(0, Math.min(stop, a + this.binSpan) - Math.max(start, a));
      this.covered += time;
      ++this.count;
      this.tally.set(name, (this.tally.get(name) ?? 0) + time);
    }
  }
  tile(track: number, level: number, index: number, lanes: number): Tile {
    this.flush();
    const bytes = 32 + this.bin.length * 14;
    if (this.bin.length === 0) return { kind: 'empty', track, level, index, lanes, provisional: false, bytes: 32 };
    const lane = Uint16Array.from(this.lane);
    const tile: DensityTile = { kind: 'density', track, level, index, lanes, provisional: false, bytes, lane, bin: Uint16Array.from(this.bin), cover: Uint16Array.from(this.cover), events: Uint32Array.from(this.events), name: Uint32Array.from(this.name), lanesAt: laneOffsets(lane, lanes) };
    return tile;
  }
}

function lower(values: Float64Array, from: number, to: number, least: number): number {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (values[middle] < least) from = middle + 1;
    else to = middle;
  }
  return from;
}

export class EmbeddedSource implements Source {
  readonly served = false;
  private readonly parts: Part[] = [];
  private readonly content = new Map<number, Slices | Counter | Density>();
  private readonly unions = new Map<number, Slices>();
  private readonly trackById = new Map<number, Track>();
  private readonly length: number;

  private constructor(
    private readonly header: Header,
    private readonly columns: Uint8Array,
  ) {
    const run = header.document.runs[0];
    this.length = run.length;
    for (const track of run.tracks) this.trackById.set(track.id, track);
    for (const track of header.tracks) this.read(track);
  }

  /** Unpacks the base64 text of the page. */
  static async open(text: string): Promise<EmbeddedSource> {
    const bytes = await inflate(text);
    const view = new DataView(bytes.buffer);
    if (bytes.length < 16 || view.getUint32(0, true) !== 0x424d4554) throw new SourceError('The data in this page is damaged.');
    if (view.getUint32(4, true) !== 1) throw new SourceError('The data in this page has a form that this page does not know.');
    const length = view.getUint32(8, true);
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(16, 16 + length))) as Header;
    return new EmbeddedSource(header, bytes.subarray(16 + length));
  }

  private read(track: TrackHeader): void {
    const lanes = Math.max(1, this.trackById.get(track.track)?.lanes ?? 1);
    const columns = track.columns ?? {};
    const count = track.count ?? 0;
    if (track.kind === 'counter') {
      const start = differences(varints(this.columns, columns.start, count));
      const value = new Float64Array(count);
      if (columns.value !== undefined) {
        const view = new DataView(this.columns.buffer, this.columns.byteOffset + columns.value[0], columns.value[1]);
        for (let i = 0; i < count; ++i) value[i] = view.getFloat64(i * 8, true);
      }
      this.content.set(track.track, { kind: 'counter', start, value });
      return;
    }
    if (track.kind === 'density') {
      const lane = Uint16Array.from(varints(this.columns, columns.lane, count));
      const bin = differences(varints(this.columns, columns.bin, count));
      const [cover, events, name] = [columns.cover, columns.events, columns.name].map((each) => varints(this.columns, each, count));
      this.content.set(track.track, { kind: 'density', level: track.level ?? 0, lanes, lanesAt: laneOffsets(lane, lanes), bin, cover: Uint16Array.from(cover), events: Uint32Array.from(events), name: Uint32Array.from(name) });
      return;
    }
    const parts = (track.parts ?? []).map((part): Part => {
      const raw = (column: string): Float64Array => varints(this.columns, part.columns[column], part.count);
      const duration = raw('duration');
      for (let i = 0; i < duration.length; ++i) --duration[i];
      const cause = raw('cause');
      for (let i = 0, last = 0; i < cause.length; ++i)
        if (cause[i] > 0) {
          last += unzigzag(cause[i] - 1);
          cause[i] = last + 1;
        }
      return {
        track: track.track, table: part.table, count: part.count, duration, cause, causeTable: part.cause_table ?? 0,
        start: differences(raw('start')), row: differences(raw('row')),
        name: Uint32Array.from(raw('name')), lane: Uint16Array.from(raw('lane')), flags: Uint16Array.from(raw('flags')), shape: Uint32Array.from(raw('shape')),
        extra: (part.extra ?? []).map(({ title, unit, column }) => ({ title, unit, values: varints(this.columns, column, part.count) })),
      };
    });
    this.parts.push(...parts);
    this.content.set(track.track, this.merge(parts, lanes));
  }

  /** The parts of a track together, by (lane, start). */
  private merge(parts: Part[], lanes: number): Slices {
    const count = parts.reduce((sum, part) => sum + part.count, 0);
    const lanesAt = new Uint32Array(lanes + 1);
    for (const part of parts) for (const lane of part.lane) ++lanesAt[Math.min(lane, lanes - 1) + 1];
    for (let i = 0; i < lanes; ++i) lanesAt[i + 1] += lanesAt[i];
    const slices: Slices = { kind: 'slices', lanes, lanesAt, start: new Float64Array(count), duration: new Float64Array(count), name: new Uint32Array(count), flags: new Uint16Array(count), row: new BigUint64Array(count) };
    const next = lanesAt.slice();
    const at = parts.map(() => 0);
    for (let i = 0; i < count; ++i) {
      let from = -1;
      for (let p = 0; p < parts.length; ++p) if (at[p] < parts[p].count && (from < 0 || parts[p].start[at[p]] < parts[from].start[at[from]])) from = p;
      const part = parts[from];
      const each = at[from]++;
      const to = next[Math.min(part.lane[each], lanes - 1)]++;
      slices.start[to] = part.start[each];
      slices.duration[to] = part.duration[each];
      slices.name[to] = part.name[each];
      slices.flags[to] = part.flags[each];
      slices.row[to] = (BigInt(part.table) << 48n) | BigInt(part.row[each]);
    }
    return slices;
  }

  private below(track: number): number[] {
    const found: number[] = [];
    const visit = (id: number): void => {
      for (const each of this.trackById.values())
        if (each.parent === id && each.id !== id) {
          found.push(each.id);
          visit(each.id);
        }
    };
    visit(track);
    return found;
  }
  /** Device work of the queues below a group as slices that do not overlap; each stretch belongs to what began first. */
  private union(track: number): Slices {
    const known = this.unions.get(track);
    if (known !== undefined) return known;
    const lists = this.below(track).flatMap((id) => {
      const content = this.content.get(id);
      const kind = this.trackById.get(id)?.kind;
      return content?.kind === 'slices' && (kind === 'queue' || kind === 'copy') ? [content] : [];
    });
    const made = uniteSlices(lists, this.length);
    this.unions.set(track, made);
    return made;
  }

  document(): Promise<ViewDocument> {
    return Promise.resolve(this.header.document);
  }
  overview(): Promise<Overview> {
    return Promise.resolve(this.header.overview);
  }
  tiles(_run: number, level: number, index: number, tracks: number[]): Promise<Tile[]> {
    return Promise.resolve(tracks.map((track) => this.tile(track, level, index)));
  }

  private tile(track: number, level: number, index: number): Tile {
    const content = this.content.get(track);
    const begin = index * tileSpan(level);
    const end = begin + tileSpan(level);
    if (content === undefined) {
      const union = this.union(track);
      return union.start.length === 0 ? { kind: 'empty', track, level, index, lanes: 1, provisional: false, bytes: 32 } : this.densityOf(union, track, level, index);
    }
    if (content.kind === 'counter') return counterTile(content, track, level, index);
    if (content.kind === 'density') return this.coarse(content, track, level, index);
    // The slices of each lane that overlap the tile.
    const ranges: [number, number][] = [];
    let count = 0;
    for (let lane = 0; lane < content.lanes; ++lane) {
      const [first, stop] = [content.lanesAt[lane], content.lanesAt[lane + 1]];
      let from = lower(content.start, first, stop, begin);
      while (from > first && reaches(content, from - 1, begin)) --from;
      const to = lower(content.start, from, stop, end);
      ranges.push([from, to]);
      count += to - from;
    }
    if (count === 0) return { kind: 'empty', track, level, index, lanes: content.lanes, provisional: false, bytes: 32 };
    if (count > kMostSlices) return this.densityOf(content, track, level, index);
    const lane = new Uint16Array(count);
    const [start, duration, row, name, flags] = [new Float64Array(count), new Float64Array(count), new BigUint64Array(count), new Uint32Array(count), new Uint16Array(count)];
    let at = 0;
    ranges.forEach(([from, to], each) => {
      start.set(content.start.subarray(from, to), at);
      duration.set(content.duration.subarray(from, to), at);
      row.set(content.row.subarray(from, to), at);
      name.set(content.name.subarray(from, to), at);
      flags.set(content.flags.subarray(from, to), at);
      lane.fill(each, at, at + to - from);
      at += to - from;
    });
    return { kind: 'slices', track, level, index, lanes: content.lanes, provisional: false, bytes: 32 + count * 32, start, duration, row, name, lane, flags, lanesAt: laneOffsets(lane, content.lanes) };
  }

  private densityOf(content: Slices, track: number, level: number, index: number): Tile {
    const begin = index * tileSpan(level);
    const end = begin + tileSpan(level);
    const binner = new Binner(begin, 2 ** level, 0);
    for (let lane = 0; lane < content.lanes; ++lane) {
      binner.next(lane);
      const [first, stop] = [content.lanesAt[lane], content.lanesAt[lane + 1]];
      let i = lower(content.start, first, stop, begin);
      while (i > first && reaches(content, i - 1, begin)) --i;
      for (; i < stop && content.start[i] < end; ++i) binner.add(content.start[i], content.duration[i] < 0 ? Math.max(this.length, content.start[i]) : content.start[i] + content.duration[i], content.name[i]);
    }
    return binner.tile(track, level, index, content.lanes);
  }

  /** A tile of a summary, which has one level only: coarser ones are merged from it, finer ones repeat it. */
  private coarse(content: Density, track: number, level: number, index: number): Tile {
    const begin = index * tileSpan(level);
    const end = begin + tileSpan(level);
    const own = 2 ** content.level;
    const wide = 2 ** level;
    const lane: number[] = [];
    const bin: number[] = [];
    const cover: number[] = [];
    const events: number[] = [];
    const name: number[] = [];
    for (let each = 0; each < content.lanes; ++each) {
      const [first, stop] = [content.lanesAt[each], content.lanesAt[each + 1]];
      let i = lower(content.bin, first, stop, Math.floor(begin / own));
      if (level >= content.level) {
        let at = -1;
        let covered = 0;
        let best = -1;
        for (; i < stop && content.bin[i] * own < end; ++i) {
          const to = Math.floor((content.bin[i] * own - begin) / wide);
          if (to !== at) {
            at = to;
            covered = 0;
            best = -1;
            lane.push(each);
            bin.push(to);
            cover.push(1);
            events.push(0);
            name.push(content.name[i]);
          }
          const last = bin.length - 1;
          covered += (content.cover[i] * own) / wide;
          cover[last] = Math.max(1, Math.min(65535, Math.floor(covered + 1e-6)));
          events[last] += content.events[i];
          if (content.cover[i] > best) {
            best = content.cover[i];
            name[last] = content.name[i];
          }
        }
      } else {
        for (; i < stop && content.bin[i] * own < end; ++i) {
          const from = Math.max(0, Math.floor((content.bin[i] * own - begin) / wide));
          const to = Math.min(kBins, Math.ceil(((content.bin[i] + 1) * own - begin) / wide));
          for (let b = from; b < to; ++b) {
            lane.push(each);
            bin.push(b);
            cover.push(content.cover[i]);
            events.push(content.events[i]);
            name.push(content.name[i]);
          }
        }
      }
    }
    if (bin.length === 0) return { kind: 'empty', track, level, index, lanes: content.lanes, provisional: false, bytes: 32 };
    const lanes = Uint16Array.from(lane);
    return { kind: 'density', track, level, index, lanes: content.lanes, provisional: false, bytes: 32 + bin.length * 14, lane: lanes, bin: Uint16Array.from(bin), cover: Uint16Array.from(cover), events: Uint32Array.from(events), name: Uint32Array.from(name), lanesAt: laneOffsets(lanes, content.lanes) };
  }

  names(_run: number, ids: number[]): Promise<{ names: string[]; colors: number[] }> {
    const { texts, colors } = this.header.names;
    return Promise.resolve({ names: ids.map((id) => texts[id] ?? ''), colors: ids.map((id) => colors[id] ?? 0) });
  }

  private stop(part: Part, i: number): number {
    return part.duration[i] < 0 ? Math.max(this.length, part.start[i]) : part.start[i] + part.duration[i];
  }
  private partsOf(...tables: string[]): Part[] {
    return this.parts.filter((part) => tables.includes(this.header.tables[part.table]));
  }

  private entries(parts: Part[], from: number, to: number): Entry[] {
    const byName = new Map<number, Entry>();
    for (const part of parts) {
      const bytesOf = part.extra.find((each) => each.title === 'bytes')?.values;
      for (let i = 0; i < part.count && part.start[i] < to; ++i) {
        const stop = this.stop(part, i);
        if (stop < from || (stop === from && part.start[i] < from)) continue;
        const time = Math.min(stop, to) - Math.max(part.start[i], from);
        let entry = byName.get(part.name[i]);
        if (entry === undefined) byName.set(part.name[i], (entry = { name: part.name[i], text: this.header.names.texts[part.name[i]] ?? '', count: 0, total: 0, min: Infinity, max: 0 }));
        ++entry.count;
        entry.total += time;
        entry.min = Math.min(entry.min ?? Infinity, time);
        entry.max = Math.max(entry.max ?? 0, time);
        if (bytesOf !== undefined && bytesOf[i] > 0) entry.bytes = (entry.bytes ?? 0) + bytesOf[i] - 1;
      }
    }
    const list = [...byName.values()];
    for (const entry of list) entry.mean = entry.total / entry.count;
    return list.sort((a, b) => b.total - a.total || (a.text < b.text ? -1 : 1));
  }

  span(_run: number, from: number, to: number): Promise<SpanTables> {
    const byDevice = new Map<string, { work: Slices[]; copies: Slices[] }>();
    for (const track of this.trackById.values()) {
      const content = this.content.get(track.id);
      if (content?.kind !== 'slices' || (track.kind !== 'queue' && track.kind !== 'copy')) continue;
      const device = track.device ?? '';
      const lists = byDevice.get(device) ?? { work: [], copies: [] };
      byDevice.set(device, lists);
      (track.kind === 'copy' ? lists.copies : lists.work).push(content);
    }
    const devices = [...byDevice].map(([text, { work, copies }]): DeviceTime => {
      const all = uniteSlices([...work, ...copies], this.length);
      let busy = 0;
      let gap = 0;
      let last = from;
      for (let i = 0; i < all.start.length; ++i) {
        const a = Math.max(from, all.start[i]);
        const b = Math.min(to, all.start[i] + all.duration[i]);
        if (b < a || all.start[i] > to) continue;
        busy += b - a;
        gap = Math.max(gap, a - last);
        last = Math.max(last, b);
      }
      return { text, busy, idle: to - from - busy, longest_gap: Math.max(gap, to - last) };
    });
    return Promise.resolve({
      kernels: this.entries(this.partsOf('dispatch'), from, to),
      calls: this.entries(this.partsOf('api'), from, to),
      copies: this.entries(this.partsOf('copy', 'fill'), from, to),
      markers: this.entries(this.partsOf('marker'), from, to),
      devices,
    });
  }

  private at(part: Part, i: number, how: string): SliceLink {
    return { row: String((BigInt(part.table) << 48n) | BigInt(part.row[i])), table: this.header.tables[part.table] ?? '', track: part.track, lane: part.lane[i], start: part.start[i], duration: part.duration[i], name: this.header.names.texts[part.name[i]] ?? '', how };
  }

  /** What was open around a call on its thread, innermost first. */
  private around(call: SliceLink): string[] {
    const found: [number, string][] = [];
    for (const part of this.parts) {
      if (part.track !== call.track) continue;
      for (let i = 0; i < part.count && part.start[i] <= call.start; ++i)
        if (part.lane[i] < call.lane && (part.duration[i] < 0 || part.start[i] + part.duration[i] >= call.start + Math.max(call.duration, 0))) found.push([part.lane[i], this.header.names.texts[part.name[i]] ?? '']);
    }
    return found.sort((a, b) => b[0] - a[0]).slice(0, 200).map(([, name]) => name);
  }

  slice(_run: number, row: string): Promise<SliceDetails> {
    const id = BigInt(row);
    const table = Number(id >> 48n);
    const number = Number(id & ((1n << 48n) - 1n));
    for (const part of this.parts) {
      if (part.table !== table) continue;
      const i = part.row.indexOf(number);
      if (i < 0) continue;
      const columns: [string, string][] = [...(this.header.shapes[part.shape[i]] ?? [])];
      for (const { title, unit, values } of part.extra) if (values[i] > 0) columns.push([title, unit === 'B' ? `${shownBytes(values[i] - 1)} (${(values[i] - 1).toLocaleString('en-US')} B)` : unit === '' ? String(values[i] - 1) : `${(values[i] - 1).toLocaleString('en-US')} ${unit}`]);
      const links: SliceLink[] = [];
      if (part.cause[i] > 0)
        for (const other of this.parts)
          if (other.table === part.causeTable) {
            const from = other.row.indexOf(part.cause[i] - 1);
            if (from >= 0) links.push(this.at(other, from, 'launched by'));
          }
      for (const other of this.parts) {
        if (other.causeTable !== table || other.table === table) continue;
        for (let from = other.cause.indexOf(number + 1); from >= 0 && links.length < 200; from = other.cause.indexOf(number + 1, from + 1)) links.push(this.at(other, from, 'launched'));
      }
      const launch = this.header.tables[table] === 'api' ? this.at(part, i, '') : links.find((link) => link.how === 'launched by');
      return Promise.resolve({ ...this.at(part, i, ''), name: this.header.names.texts[part.name[i]] ?? '', columns, links, around: launch === undefined ? [] : this.around(launch) });
    }
    return Promise.reject(new SourceError('This page does not hold that event.'));
  }

  search(_run: number, expression: string, matchCase: boolean, after: string | null): Promise<SearchResult> {
    let pattern: RegExp;
    try {
      pattern = new RegExp(expression, matchCase ? 'u' : 'iu');
    } catch (error) {
      return Promise.reject(new SourceError(error instanceof Error ? error.message : String(error), 400));
    }
    const { texts, kinds } = this.header.names;
    const matching = new Map<number, FoundName>();
    texts.forEach((text, name) => {
      if (text !== '' && pattern.test(text)) matching.set(name, { name, text, kind: kinds[name] ?? '', count: 0, total: 0 });
    });
    const hits: Hit[] = [];
    for (const part of this.parts)
      for (let i = 0; i < part.count; ++i) {
        const found = matching.get(part.name[i]);
        if (found === undefined) continue;
        ++found.count;
        found.total += this.stop(part, i) - part.start[i];
        const { row, track, lane, start, duration } = this.at(part, i, '');
        hits.push({ row, track, lane, start, duration, name: part.name[i] });
      }
    hits.sort((a, b) => a.start - b.start);
    const from = after === null ? 0 : Number(after);
    const names = [...matching.values()].filter((each) => each.count > 0).sort((a, b) => b.total - a.total);
    return Promise.resolve({ names, hits: hits.slice(from, from + kMostHits), more: from + kMostHits < hits.length ? String(from + kMostHits) : null });
  }

  kernel(_run: number, name: number, from: number, to: number): Promise<KernelDetails | null> {
    const launches: { start: number; duration: number; row: string }[] = [];
    for (const part of this.partsOf('dispatch'))
      for (let i = 0; i < part.count && part.start[i] < to; ++i)
        if (part.name[i] === name && this.stop(part, i) >= from && part.duration[i] >= 0) launches.push({ start: part.start[i], duration: part.duration[i], row: String((BigInt(part.table) << 48n) | BigInt(part.row[i])) });
    if (launches.length === 0) return Promise.resolve(null);
    launches.sort((a, b) => a.start - b.start);
    const sorted = Float64Array.from(launches, (each) => each.duration).sort();
    const total = sorted.reduce((sum, each) => sum + each, 0);
    const quantile = (share: number): number => sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(sorted.length * share) - 1))];
    const [least, most] = [Math.max(1, sorted[0]), Math.max(1, sorted[sorted.length - 1])];
    const bins = most / least < 1.0001 ? 1 : 40;
    const edges = Array.from({ length: bins + 1 }, (_, i) => (bins === 1 ? [least, most][i] : least * (most / least) ** (i / bins)));
    const counts = new Array<number>(bins).fill(0);
    for (const each of sorted) ++counts[bins === 1 ? 0 : Math.min(bins - 1, Math.max(0, Math.floor((Math.log(Math.max(1, each) / least) / Math.log(most / least)) * bins)))];
    let shown = launches;
    if (launches.length > kMostLaunches) {
      const every = launches.length / (kMostLaunches - 1);
      const longest = launches.reduce((best, each) => (each.duration > best.duration ? each : best));
      const chosen = new Set(Array.from({ length: kMostLaunches - 1 }, (_, i) => launches[Math.floor(i * every)]));
      chosen.add(longest);
      shown = [...chosen].sort((a, b) => a.start - b.start);
    }
    return Promise.resolve({
      name, text: this.header.names.texts[name] ?? '', count: launches.length, total, mean: total / launches.length, min: sorted[0], max: sorted[sorted.length - 1],
      p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99), histogram: { edges, counts },
      launches: { start: shown.map((each) => each.start), duration: shown.map((each) => each.duration), row: shown.map((each) => each.row) }, sampled: shown.length < launches.length,
    });
  }

  query(): Promise<QueryResult> {
    return Promise.reject(new SourceError('SQL needs tacho: open the run with tacho view.'));
  }
  schema(): Promise<Schema> {
    return Promise.resolve({ tables: [] });
  }
  flame(_run: number, choice: { from?: number; threads?: boolean; base?: number }): Promise<Flame | null> {
    return Promise.resolve(choice.from === undefined && choice.threads !== true && choice.base === undefined ? (this.header.flame ?? null) : null);
  }
  diff(): Promise<Diff> {
    return Promise.reject(new SourceError('Comparing needs tacho: open both runs with tacho view.'));
  }
  align(): Promise<Alignment> {
    return Promise.reject(new SourceError('Comparing needs tacho: open both runs with tacho view.'));
  }
  extra(what: string): Promise<unknown> {
    const made = this.header.extras?.[what] ?? null;
    const error = (made as { error?: unknown } | null)?.error;
    return typeof error === 'string' ? Promise.reject(new SourceError(error)) : Promise.resolve(made);
  }
}

function reaches(slices: Slices, i: number, time: number): boolean {
  return slices.duration[i] < 0 || slices.start[i] + slices.duration[i] > time;
}

/** Slices of several lists as stretches that do not overlap, on one lane. */
export function uniteSlices(lists: Slices[], length: number): Slices {
  const count = lists.reduce((sum, each) => sum + each.start.length, 0);
  const all = new Float64Array(count);
  const stop = new Float64Array(count);
  const name = new Uint32Array(count);
  let at = 0;
  for (const each of lists)
    for (let i = 0; i < each.start.length; ++i, ++at) {
      all[at] = each.start[i];
      stop[at] = each.duration[i] < 0 ? length : each.start[i] + each.duration[i];
      name[at] = each.name[i];
    }
  const order = Uint32Array.from({ length: count }, (_, i) => i).sort((a, b) => all[a] - all[b] || a - b);
  const start: number[] = [];
  const duration: number[] = [];
  const names: number[] = [];
  let end = -Infinity;
  for (const i of order) {
    const from = Math.max(all[i], end);
    if (stop[i] <= from && !(all[i] === stop[i] && all[i] > end)) continue;
    start.push(from);
    duration.push(stop[i] - from);
    names.push(name[i]);
    end = Math.max(end, stop[i]);
  }
  return { kind: 'slices', lanes: 1, lanesAt: Uint32Array.of(0, start.length), start: Float64Array.from(start), duration: Float64Array.from(duration), name: Uint32Array.from(names), flags: new Uint16Array(start.length), row: new BigUint64Array(start.length) };
}

function counterTile(content: Counter, track: number, level: number, index: number): CounterTile {
  const begin = index * tileSpan(level);
  const end = begin + tileSpan(level);
  const from = lower(content.start, 0, content.start.length, begin);
  const to = lower(content.start, from, content.start.length, end);
  const bin: number[] = [];
  const [min, max, last]: number[][] = [[], [], []];
  for (let i = from; i < to; ++i) {
    const at = Math.floor((content.start[i] - begin) / 2 ** level);
    const value = content.value[i];
    const known = bin.length - 1;
    if (known >= 0 && bin[known] === at) {
      min[known] = Math.min(min[known], value);
      max[known] = Math.max(max[known], value);
      last[known] = value;
    } else {
      bin.push(at);
      min.push(value);
      max.push(value);
      last.push(value);
    }
  }
  return { kind: 'counter', track, level, index, lanes: 1, provisional: false, bytes: 40 + bin.length * 26, bin: Uint16Array.from(bin), min: Float64Array.from(min), max: Float64Array.from(max), last: Float64Array.from(last), before: from > 0 ? content.value[from - 1] : NaN };
}
