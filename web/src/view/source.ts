// Where the page of `tacho view` gets what it shows: a server on this machine (HttpSource) or the columns inside the page
// (EmbeddedSource). All times are nanoseconds since the run's first event (t0), in doubles.

import type { FlameRun } from '../flame/tree';
import type { Tile } from './tile';

export type TrackKind =
  | 'host'
  | 'process'
  | 'thread'
  | 'queue'
  | 'copy'
  | 'marker'
  | 'operator'
  | 'counter'
  | 'telemetry'
  | 'sample'
  | 'message'
  | 'stack'
  | 'rank'
  | 'group';

export interface Track {
  id: number;
  parent: number;
  kind: TrackKind;
  name: string;
  sort: number;
  lanes: number;
  events: number;
  unit?: string;
  min?: number;
  max?: number;
  tables?: string[];
  process?: number;
  rank?: number;
  device?: string;
  /** For how long it was busy, about. */
  busy?: number;
  /** Of a counter: the trace has sums since a beginning, and this is their growth over time. */
  rate?: boolean;
  /** A process that only helped others to start, or did nothing that is in the run. */
  helper?: boolean;
}

export interface Run {
  id: number;
  name: string;
  path?: string;
  command?: string;
  machine?: string;
  started?: string | null;
  t0: string;
  /** What there is to draw: marks and readings beside the run included. */
  length: number;
  /** The first begin of what takes time. */
  run_begin?: number;
  /** From there to the last end of what takes time. */
  run_length?: number;
  /** How long the program ran, in seconds, where that is known. */
  program?: number;
  complete?: boolean;
  note?: string;
  losses?: string[];
  aggregated?: boolean;
  /** It holds sums of tacho watch over so many ns, and no single operations. */
  sums?: number;
  /** It is being recorded. */
  live?: boolean;
  /** Counts the states of a recording; 0 or absent = there is only one. */
  generation?: number;
  /** Equal while the numbers of names mean the same. */
  naming?: number;
  events: number;
  clock?: string;
  ready?: number;
  dims?: Record<string, number>;
  /** Further views that there are of this run: "ranks", "analysis". */
  views?: string[];
  /** What its names are: "kernel", "collective", ...; each kind has one colour. */
  kinds?: NameKind[];
  tracks: Track[];
}

export type NameKind = 'kernel' | 'collective' | 'copy' | 'api' | 'operator' | 'host' | 'marker' | 'wait';

export interface ViewDocument {
  version: string;
  runs: Run[];
  /** A recording without a state so far. */
  live?: boolean;
  /** The optional views that the source has: "kernel", "flame", ... */
  views?: string[];
  /** Two runs that tacho was asked to compare. */
  compare?: { a: number; b: number } | null;
}

/** A line of a table of kernels, calls, copies or markers. */
export interface Entry {
  name?: number;
  text: string;
  count: number;
  total: number;
  mean?: number;
  min?: number;
  max?: number;
  share?: number;
  /** Entries without an end, of `count`. */
  unknown?: number;
  bytes?: number;
  rate?: number;
  /** Copies that no size is known of, of `count`. */
  unsized?: number;
}

export interface Finding {
  rule: string;
  state: 'found' | 'possible';
  title?: string;
  /** "GPU 0" */
  where?: string;
  /** What to try. */
  try?: string[];
  sentence: string;
  evidence?: string[];
  saves?: [number, number] | null;
  /** Bytes of memory. */
  frees?: [number, number] | null;
  refuted_by?: string;
  spans?: { from: number; to: number; tracks?: number[] }[];
}

/** Shares of time by bin (bin i begins at span[0] + i * bin_width), over all devices together, and sums over the run. */
export interface Overview {
  span: [number, number];
  bins: number;
  bin_width?: number;
  /** The index is being built: only `busy` is there, as an estimate. */
  provisional?: boolean;
  /** Any work: compute + exposed_copies. */
  busy: number[];
  compute?: number[];
  copies?: number[];
  exposed_copies?: number[];
  comm?: number[];
  calls?: number[];
  totals: {
    gpu_busy?: number;
    compute?: number;
    gpu_idle?: number;
    copy?: number;
    exposed_copy?: number;
    comm?: number;
    api?: number;
    kernels?: number;
    span: number;
    devices: number;
  };
  kernels?: Entry[];
  calls_top?: Entry[];
  copies_top?: Entry[];
  findings?: Finding[];
  /** Sentences about what makes times doubtful. */
  remarks?: string[];
  not_judged?: { rule: string; title?: string; needs: string }[];
  /** false: the findings are being computed; ask again. */
  findings_ready?: boolean;
}

export interface DeviceTime {
  text: string;
  busy: number;
  idle: number;
  longest_gap?: number;
  copy?: number;
  overlap_copy?: number;
  exposed_copy?: number;
  comm?: number;
}

export interface SpanTables {
  kernels: Entry[];
  calls: Entry[];
  copies: Entry[];
  markers: Entry[];
  devices: DeviceTime[];
}

/** A place in the timeline. */
export interface Place {
  row: string;
  track: number;
  lane: number;
  start: number;
  duration: number;
}

export interface SliceLink extends Place {
  table: string;
  name?: string;
  how: string;
}

export interface SliceDetails extends Place {
  table: string;
  name: string;
  columns: [string, string][];
  links?: SliceLink[];
  stack?: string[];
  /** Where no stack was recorded: what was open around the launching call on its thread, innermost first. */
  around?: string[];
}

export interface Hit extends Place {
  name: number;
}

export interface FoundName {
  name: number;
  text: string;
  kind: string;
  count: number;
  total: number;
}

export interface SearchResult {
  names: FoundName[];
  hits: Hit[];
  more: string | null;
}

export interface KernelDetails extends Entry {
  p50?: number;
  p90?: number;
  p99?: number;
  histogram: { edges: number[]; counts: number[] };
  launches: { every?: number; start: number[]; duration: number[]; row: string[] };
  sampled: boolean;
}

export interface QueryResult {
  columns: string[];
  types: string[];
  rows: (string | number | null)[][];
  cut: boolean;
  seconds: number;
}

export interface Schema {
  tables: { name: string; columns: { name: string; type?: string; meaning?: string }[] }[];
}

/** What `tacho flame` would draw of a run, or of two. */
export interface Flame {
  runs: FlameRun[];
  /** All runs have call stacks; else `note` says what would have recorded them. */
  stacks: boolean;
  note: string;
  /** Nodes that became part of others, so that the answer is not too large; `deepest`: only so many levels are told apart, 0 = all. */
  folded: { nodes: number; host: number; gpu: number; deepest: number };
}

/** What `tacho diff` says; rows as its JSON has them. */
export interface Diff {
  by: string;
  columns: { name: string; title: string; unit: string }[];
  rows: (string | number | null)[][];
  /** By row: the number of its name in a and in b; 0 = it does not occur. */
  names: [number, number][];
  /** Of all rows; the answer has the largest. */
  count: number;
  total_a: number;
  total_b: number;
  /** What changed, and whether it is more than noise. */
  sentence?: string;
  remarks: string[];
}

/** The moment of two runs that is the same in both, ns since each one's t0; `on`: the text of the marker, null = their beginnings. */
export interface Alignment {
  a: number;
  b: number;
  on: string | null;
  on_b?: string;
}

export interface Source {
  /** Whether a server answers: SQL exists only there. */
  readonly served: boolean;
  /** The state of a recording that requests are about, where the source can have several. */
  generation?: number;
  /** Told how much of an answer that takes its time is done, 0 to 1. */
  progress?: ((done: number) => void) | null;
  document(): Promise<ViewDocument>;
  overview(run: number): Promise<Overview>;
  /** The tiles (level, index) of the tracks; a track may be missing in the answer where nothing is known of it. */
  tiles(run: number, level: number, index: number, tracks: number[], signal: AbortSignal): Promise<Tile[]>;
  names(run: number, ids: number[]): Promise<{ names: string[]; colors: number[] }>;
  span(run: number, from: number, to: number, signal?: AbortSignal): Promise<SpanTables>;
  slice(run: number, row: string): Promise<SliceDetails>;
  search(
    run: number,
    expression: string,
    matchCase: boolean,
    after: string | null,
    signal?: AbortSignal,
  ): Promise<SearchResult>;
  /** null where the source does not have it. */
  kernel(run: number, name: number, from: number, to: number, signal?: AbortSignal): Promise<KernelDetails | null>;
  query(run: number, sql: string, signal?: AbortSignal): Promise<QueryResult>;
  schema(): Promise<Schema>;
  /** The stacks of a run, or of the span [from, to); null where the source cannot tell. `base`: compared with another run, by functions unless `by` says otherwise. */
  flame(
    run: number,
    choice: { from?: number; to?: number; threads?: boolean; base?: number; by?: 'function' | 'line' },
    signal?: AbortSignal,
  ): Promise<Flame | null>;
  /** What changed from run a to run b. */
  diff(a: number, b: number, by: string, signal?: AbortSignal): Promise<Diff>;
  align(a: number, b: number, signal?: AbortSignal): Promise<Alignment>;
  /** Any further view's JSON ("ranks"); null where there is none. */
  extra(what: string, run: number): Promise<unknown>;
}

/** What the server says in one sentence when a request fails. */
export class SourceError extends Error {
  constructor(
    message: string,
    readonly status = 0,
  ) {
    super(message);
  }
}
