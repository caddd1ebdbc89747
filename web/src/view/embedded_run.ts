// A run of the self-contained page. Tiles are those of tacho's server (embedded_lines.ts); sums over a span, lists of
// names and what is known of a slice come from the slices that lie below them, by the rules of src/view/run.cpp.

import { Lines, rowId, type Line, type LineHeader, type Slices } from './embedded_lines';
import type { Packed } from './packed';
import {
  SourceError,
  type Alignment,
  type DeviceTime,
  type Diff,
  type Entry,
  type Flame,
  type FoundName,
  type Hit,
  type KernelDetails,
  type Overview,
  type Place,
  type SearchResult,
  type SliceDetails,
  type SliceLink,
  type SpanTables,
  type ViewDocument,
} from './source';
import { kGraphNode, kUnfinished, type Tile } from './tile';

/** A column of a table's rows: 1 + a number, or 1 + an index into `texts`; 0 = nothing to say. */
interface Detail {
  title: string;
  texts?: string[];
  /** The bytes that the texts say. */
  numbers?: number[];
}
export interface Header {
  document: ViewDocument;
  overview: Overview;
  flame?: Flame;
  names: { texts: string[]; colors: number[]; kinds: string[]; framework: number[]; communicates: number[] };
  tables: string[];
  lines: LineHeader[];
  details: Record<string, Detail[] | undefined>;
  /** What dimensions of rows say; the column "shape" of a table's rows is an index into it. */
  shapes: [string, string][][];
  /** Further views by name; {"error"} where there is nothing to see. */
  extras?: Record<string, unknown>;
  /** Of the first of several runs: what changed between it and the others, both ways. */
  comparisons?: Comparison[];
}
export interface Comparison {
  a: number;
  b: number;
  align: Alignment;
  /** By what is compared: what changed, or why there is nothing to compare. */
  diff: Record<string, Diff | { error: string } | undefined>;
  flame: Flame;
}
/** A slice. */
interface At {
  line: Line;
  slices: Slices;
  i: number;
}

const kMostHits = 1000;
const kMostLinks = 200;
const kMostLaunches = 4000;
const kMostBars = 60;
const kMostFrames = 200;

export class EmbeddedRun {
  readonly header: Header;
  private readonly lines: Lines;
  private readonly length: number;
  private readonly framework: ReadonlySet<number>;
  private readonly communicates: ReadonlySet<number>;
  private readonly columns = new Map<string, Float64Array>();

  constructor(private readonly packed: Packed) {
    const header = (this.header = packed.json as Header);
    const [run] = header.document.runs;
    this.length = run.length;
    this.lines = new Lines(packed, header.lines, run.tracks, header.tables, run.length);
    this.framework = new Set(header.names.framework);
    this.communicates = new Set(header.names.communicates);
  }

  overview(): Promise<Overview> {
    return Promise.resolve(this.header.overview);
  }
  tiles(level: number, index: number, tracks: number[]): Promise<Tile[]> {
    return Promise.resolve(tracks.map((track) => this.lines.tile(track, level, index)));
  }
  names(ids: number[]): Promise<{ names: string[]; colors: number[] }> {
    const { colors } = this.header.names;
    return Promise.resolve({ names: ids.map((id) => this.text(id)), colors: ids.map((id) => colors[id] ?? 0) });
  }

  private text(name: number): string {
    return this.header.names.texts[name] ?? '';
  }
  private table(name: string): number {
    return this.header.tables.indexOf(name);
  }
  /** A column of the rows of a table on a line, by Slices.rank; null where all of it says nothing. */
  private values(line: Line, table: number, title: string): Float64Array | null {
    const rows = line.header.slices?.rows[table];
    if (rows?.columns[title] === undefined) return null;
    const key = `${line.track.id} ${table} ${title}`;
    let values = this.columns.get(key);
    if (values === undefined) {
      const plain = title === 'shape' || this.detail(table, title)?.texts !== undefined;
      values = this.packed[plain ? 'integers' : 'differences'](rows.columns, title, rows.count);
      this.columns.set(key, values);
    }
    return values;
  }
  private detail(table: number, title: string): Detail | undefined {
    return this.header.details[table]?.find((each) => each.title === title);
  }

  /** Sums by name of the parts of slices within [from, to). */
  private entries(tables: string[], from: number, to: number, keep: (name: number) => boolean = () => true): Entry[] {
    if (from <= 0 && to >= this.length) [from, to] = [-Infinity, Infinity]; // what lies at the very end belongs to the run
    const wanted = new Set(tables.map((each) => this.table(each)));
    const copies = tables.includes('copy');
    type Sums = Required<Pick<Entry, 'name' | 'text' | 'count' | 'total'>> & Pick<Entry, 'min' | 'max'>;
    const byName = new Map<number, Sums & { unknown: number; bytes: number; sized: number; sizedTime: number }>();
    for (const { line, slices } of this.lines.withSlices())
      for (let i = 0; i < slices.count && slices.start[i] < to; ++i) {
        const name = slices.name[i];
        if (!wanted.has(slices.table[i]) || !keep(name)) continue;
        const start = slices.start[i];
        const open = (slices.flags[i] & kUnfinished) !== 0;
        const end = open ? start : start + slices.duration[i];
        if (end <= from && start < from) continue;
        let sums = byName.get(name);
        if (sums === undefined) {
          const text = this.text(name);
          byName.set(name, (sums = { name, text, count: 0, total: 0, unknown: 0, bytes: 0, sized: 0, sizedTime: 0 }));
        }
        const time = open ? 0 : Math.min(end, to) - Math.max(start, from);
        ++sums.count;
        const bytes = copies ? this.bytes(line, slices, i) : null;
        if (bytes !== null) {
          ++sums.sized;
          sums.bytes += bytes;
          sums.sizedTime += time;
        }
        if (open) {
          ++sums.unknown;
          continue;
        }
        sums.total += time;
        sums.min = Math.min(sums.min ?? Infinity, time);
        sums.max = Math.max(sums.max ?? 0, time);
      }
    const whole = [...byName.values()].reduce((sum, each) => sum + each.total, 0);
    return [...byName.values()]
      .sort((a, b) => b.total - a.total || a.name - b.name)
      .map(({ unknown, bytes, sized, sizedTime, ...entry }) => ({
        ...entry,
        ...(entry.count > unknown ? { mean: entry.total / (entry.count - unknown) } : {}),
        ...(unknown > 0 ? { unknown } : {}),
        share: whole > 0 ? entry.total / whole : 0,
        ...(sized > 0 ? { bytes } : {}),
        ...(sizedTime > 0 ? { rate: bytes / sizedTime } : {}),
        ...(copies && sized < entry.count ? { unsized: entry.count - sized } : {}),
      }));
  }
  /** Bytes that a copy or a fill moved; null where nothing says how many. */
  private bytes(line: Line, slices: Slices, i: number): number | null {
    const value = this.values(line, slices.table[i], 'bytes')?.[slices.rank[i]] ?? 0;
    return value === 0 ? null : (this.detail(slices.table[i], 'bytes')?.numbers?.[value - 1] ?? null);
  }

  /** What each device did in [from, to). */
  private devices(from: number, to: number): DeviceTime[] {
    type Interval = { start: number; end: number; copy: boolean; collective: boolean };
    const byDevice = new Map<number, { text: string; work: Interval[] }>();
    for (const { line, slices } of this.lines.withSlices()) {
      if (line.header.device === undefined) continue;
      let device = byDevice.get(line.header.device);
      if (device === undefined)
        byDevice.set(line.header.device, (device = { text: line.track.device ?? '', work: [] }));
      for (let i = 0; i < slices.count; ++i) {
        if (!this.lines.work.has(slices.table[i])) continue;
        const copy = this.header.tables[slices.table[i]] !== 'dispatch';
        const collective = !copy && this.communicates.has(slices.name[i]);
        const end = slices.start[i] + Math.max(slices.duration[i], 0);
        device.work.push({ start: slices.start[i], end, copy, collective });
      }
    }
    return [...byDevice]
      .sort(([a], [b]) => a - b)
      .map(([, { text, work }]) => {
        work.sort((a, b) => a.start - b.start);
        // Before its first and after its last operation a device is not in use, which is no idling.
        const first = Math.max(from, work[0]?.start ?? to);
        const last = Math.max(
          first,
          Math.min(
            to,
            work.reduce((most, each) => Math.max(most, each.end), -Infinity),
          ),
        );
        const time = (which: (each: Interval) => boolean): { time: number; gap: number } =>
          covered(work.filter(which), first, last);
        const all = time(() => true);
        const copies = time((each) => each.copy).time;
        const exposed = all.time - time((each) => !each.copy).time;
        return {
          text,
          busy: all.time,
          idle: last - first - all.time,
          longest_gap: all.gap,
          copy: copies,
          overlap_copy: copies - exposed,
          exposed_copy: exposed,
          comm: time((each) => each.collective).time,
        };
      });
  }

  span(from: number, to: number): Promise<SpanTables> {
    [from, to] = [Math.floor(from), Math.ceil(to)];
    return Promise.resolve({
      kernels: this.entries(['dispatch'], from, to),
      calls: this.entries(['api'], from, to, (name) => !this.framework.has(name)),
      copies: this.entries(['copy', 'fill'], from, to),
      markers: this.entries(['marker'], from, to),
      devices: this.devices(Math.max(from, 0), Math.min(to, this.length)),
    });
  }

  private place({ line, slices, i }: At): Place {
    const row = String(rowId(slices.table[i], slices.row[i]));
    return { row, track: line.track.id, lane: slices.lane[i], start: slices.start[i], duration: slices.duration[i] };
  }
  private link(at: At, how: string): SliceLink {
    const { table, name } = at.slices;
    return { ...this.place(at), table: this.header.tables[table[at.i]] ?? '', name: this.text(name[at.i]), how };
  }
  private find(row: string): At | null {
    const table = Number(BigInt(row) >> 48n);
    const number = Number(BigInt(row) & ((1n << 48n) - 1n));
    for (const { line, slices } of this.lines.withSlices())
      for (let i = slices.row.indexOf(number); i >= 0; i = slices.row.indexOf(number, i + 1))
        if (slices.table[i] === table) return { line, slices, i };
    return null;
  }
  /** The slices with the same correlation in its process, itself included, the outermost first. */
  private linked({ line, slices, i }: At): At[] {
    const wanted = this.values(line, slices.table[i], 'correlation')?.[slices.rank[i]] ?? 0;
    if (wanted === 0) return [];
    const found: At[] = [];
    for (const other of this.lines.withSlices()) {
      if (other.line.track.process !== line.track.process) continue;
      const ranks = new Map<number, Set<number>>();
      for (const table of Object.keys(other.line.header.slices?.rows ?? {}).map(Number)) {
        const values = this.values(other.line, table, 'correlation');
        for (let at = values?.indexOf(wanted) ?? -1; at >= 0; at = values?.indexOf(wanted, at + 1) ?? -1)
          ranks.set(table, (ranks.get(table) ?? new Set()).add(at));
      }
      for (let each = 0; ranks.size > 0 && each < other.slices.count; ++each)
        if (ranks.get(other.slices.table[each])?.has(other.slices.rank[each]) === true)
          found.push({ ...other, i: each });
    }
    const startOf = ({ slices: of, i: at }: At): number => of.start[at];
    const lengthOf = ({ slices: of, i: at }: At): number => (of.duration[at] < 0 ? Infinity : of.duration[at]);
    return found.sort((a, b) => startOf(a) - startOf(b) || (lengthOf(b) > lengthOf(a) ? 1 : -1));
  }
  /** What was open around a call on its thread, innermost first. */
  private around({ line, slices, i }: At): string[] {
    const endOf = (each: number): number =>
      slices.duration[each] < 0 ? Infinity : slices.start[each] + slices.duration[each];
    const open: number[] = [];
    for (let each = 0; each < slices.count && slices.start[each] <= slices.start[i]; ++each)
      if (slices.lane[each] < slices.lane[i] && endOf(each) >= endOf(i)) open.push(each);
    open.sort((a, b) => slices.lane[b] - slices.lane[a] || slices.name[b] - slices.name[a]);
    return line.slices === null ? [] : open.slice(0, kMostFrames).map((each) => this.text(slices.name[each]));
  }

  slice(row: string): Promise<SliceDetails> {
    const at = this.find(row);
    if (at === null) return Promise.reject(new SourceError('This page does not hold that event.'));
    const { line, slices, i } = at;
    const table = slices.table[i];
    const columns = (this.header.details[table] ?? []).flatMap(({ title, texts }): [string, string][] => {
      const value = this.values(line, table, title)?.[slices.rank[i]] ?? 0;
      return value === 0 ? [] : [[title, texts === undefined ? String(value - 1) : (texts[value - 1] ?? '')]];
    });
    columns.push(...(this.header.shapes[this.values(line, table, 'shape')?.[slices.rank[i]] ?? 0] ?? []));
    const named = (each: At): string => this.header.tables[each.slices.table[each.i]] ?? '';
    const others = this.linked(at).filter((each) => each.line !== line || each.i !== i);
    const calls = others.filter((each) => named(each) === 'api');
    const links: SliceLink[] = [];
    let launch: At | undefined;
    if (named(at) === 'api') {
      const work = others.filter((each) => this.lines.work.has(each.slices.table[each.i]));
      links.push(
        ...work.map((each) => this.link(each, 'launched')),
        ...calls.map((each) => this.link(each, 'same launch')),
      );
      launch = at;
    } else if (this.lines.work.has(table) || ['sync', 'sample'].includes(named(at))) {
      links.push(...calls.map((each) => this.link(each, 'launched by')));
      if (this.lines.work.has(table)) launch = calls.at(0);
      if ((slices.flags[i] & kGraphNode) !== 0)
        links.push(
          ...others.filter((each) => named(each) === named(at)).map((each) => this.link(each, 'same graph launch')),
        );
    }
    const { how: _, ...place } = this.link(at, '');
    const around = launch === undefined ? [] : this.around(launch);
    return Promise.resolve({
      ...place,
      name: this.text(slices.name[i]),
      columns,
      links: links.slice(0, kMostLinks),
      around,
    });
  }

  search(expression: string, matchCase: boolean, after: string | null): Promise<SearchResult> {
    let pattern: RegExp;
    try {
      pattern = new RegExp(expression, matchCase ? 'u' : 'iu');
    } catch (error) {
      return Promise.reject(new SourceError(error instanceof Error ? error.message : String(error), 400));
    }
    const { texts, kinds } = this.header.names;
    const matching = new Map<number, FoundName>();
    texts.forEach((text, name) => {
      if (name > 0 && pattern.test(text))
        matching.set(name, { name, text, kind: kinds[name] ?? '', count: 0, total: 0 });
    });
    const hits: { at: At; start: number; id: bigint }[] = [];
    for (const { line, slices } of this.lines.withSlices())
      for (let i = 0; i < slices.count; ++i) {
        const found = matching.get(slices.name[i]);
        if (found === undefined) continue;
        ++found.count;
        if ((slices.flags[i] & kUnfinished) === 0) found.total += slices.duration[i];
        hits.push({ at: { line, slices, i }, start: slices.start[i], id: rowId(slices.table[i], slices.row[i]) });
      }
    hits.sort((a, b) => a.start - b.start || (a.id < b.id ? -1 : 1));
    const from = after === null ? 0 : Number(after);
    const shown = hits
      .slice(from, from + kMostHits)
      .map(({ at }): Hit => ({ ...this.place(at), name: at.slices.name[at.i] }));
    const names = [...matching.values()].sort((a, b) => b.total - a.total || b.count - a.count || a.name - b.name);
    const more = from + kMostHits < hits.length ? String(from + kMostHits) : null;
    return Promise.resolve({ names: names.slice(0, kMostHits), hits: shown, more });
  }

  kernel(name: number, from: number, to: number): Promise<KernelDetails> {
    const launches: At[] = [];
    for (const { line, slices } of this.lines.withSlices())
      for (let i = 0; i < slices.count && slices.start[i] < to; ++i) {
        const end = slices.duration[i] < 0 ? Infinity : slices.start[i] + slices.duration[i];
        if (slices.name[i] === name && (end > from || slices.start[i] >= from)) launches.push({ line, slices, i });
      }
    return Promise.resolve(this.distribution(name, launches));
  }
  private distribution(name: number, launches: At[]): KernelDetails {
    const places = launches.map((each) => this.place(each)).sort((a, b) => a.start - b.start);
    const finished = launches.filter(({ slices, i }) => (slices.flags[i] & kUnfinished) === 0);
    const sorted = Float64Array.from(finished, ({ slices, i }) => slices.duration[i]).sort();
    const total = sorted.reduce((sum, each) => sum + each, 0);
    const quantile = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
    const edges: number[] = [];
    const counts: number[] = [];
    if (sorted.length > 0) {
      const least = Math.max(sorted[0], 1);
      const most = Math.max(sorted[sorted.length - 1], least);
      const bars = most > least ? kMostBars : 1;
      for (let i = 0; i <= bars; ++i) edges.push(i === bars ? most : least * (most / least) ** (i / bars));
      if (edges[0] === edges[bars]) edges[bars] = edges[0] + 1;
      for (let i = 0, at = 0; i < bars; ++i) {
        const before = at;
        while (at < sorted.length && (i + 1 === bars || sorted[at] < edges[i + 1])) ++at;
        counts.push(at - before);
      }
    }
    // Evenly chosen ones, and always the longest.
    const step = Math.ceil(places.length / kMostLaunches);
    let longest = 0;
    places.forEach((each, i) => (longest = each.duration > places[longest].duration ? i : longest));
    const shown = places.filter((_, i) => i % step === 0 || i === longest);
    const statistics =
      sorted.length === 0
        ? {}
        : {
            mean: total / sorted.length,
            min: sorted[0],
            max: sorted[sorted.length - 1],
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
          };
    return {
      name,
      text: this.text(name),
      count: launches.length,
      total,
      ...statistics,
      histogram: { edges, counts },
      launches: {
        every: step,
        start: shown.map((each) => each.start),
        duration: shown.map((each) => each.duration),
        row: shown.map((each) => each.row),
      },
      sampled: false,
    };
  }
}

/** Time within [from, to) that intervals, by start, cover, and the longest stretch that none does. */
function covered(intervals: { start: number; end: number }[], from: number, to: number): { time: number; gap: number } {
  let [time, gap, until] = [0, 0, from];
  for (const { start, end } of intervals) {
    const stop = Math.min(end, to);
    if (stop <= start || stop <= until) continue;
    gap = Math.max(gap, start - until);
    time += stop - Math.max(start, until);
    until = stop;
  }
  return { time, gap: Math.max(gap, to - until) };
}
