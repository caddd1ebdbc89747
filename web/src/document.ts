// The JSON in the page: schema tacho-analysis/1 with "page" (docs/commands/analyze.md). Only what is used here.

export type Cell = number | string | null;

export interface Evidence {
  id: string;
  metric: string;
  term: string;
  value: number | string | null;
  unit: string;
  /** 95 % interval. */
  low: number;
  high: number;
  comparison?: string;
  threshold?: number;
  peak?: number;
}

export interface Finding {
  kernel: string;
  share: number;
  slug: string;
  title: string;
  severity: number;
  /** Only possible: the data cannot decide it. */
  possible: boolean;
  doubt?: string;
  /** Percent of the kernel's time, or of a count, that could be saved. */
  saves: { low: number; high: number; of: string; model: string };
  meaning: string;
  advice: string[];
  evidence: Evidence[];
}

export interface Metric {
  slug: string;
  name: string;
  unit: string;
  level: string;
  description: string;
  advice: string;
  formula: string;
}

export type Role = 'name' | 'unit' | 'text' | 'value';

export interface TableOfPage {
  id: string;
  block: number;
  slug: string;
  title: string;
  style: 'table' | 'bar' | 'box' | 'multibar' | 'memory_chart';
  repeats: boolean;
  comparable: boolean;
  columns: { key: string; title: string; role: Role }[];
  rows: { id: string; metric: number; channel?: number; extrapolated?: boolean; cells: Cell[] }[];
  /** Where the page has the dispatches: rows of those that some metrics leave out, because they lack a counter. */
  left_out?: { ids: string[]; metrics: string[]; counters: string[]; dispatches: number[] }[];
}

/** The tables as a program over all dispatches, see metric/render/page/page.h. */
export interface Page {
  normalisations: string[];
  kernel_names: string[];
  chosen: { kernels: number[] | null; dispatches: string[]; gpus: string[] };
  metrics: Metric[];
  tables: TableOfPage[];
  blocks: { number: number; title: string; slug: string; description: string }[];
  /** Data types of the operations that FLOPs consist of; a type can stand twice (vector and matrix unit). */
  flop_kinds: string[];
  places: number[];
  operations?: string[];
  nodes?: number[];
  lists?: number[];
  constants?: Cell[];
  inputs?: Cell[][];
  values?: number[][];
  dispatches?: {
    id: number[];
    kernel: number[];
    gpu: number[];
    repeats: number[];
    duration: number;
    flops: number;
    l1: number;
    l2: number;
    hbm: number;
    lds: number;
    kinds: number[];
  };
  fixed?: { kernel: number | null; values: Cell[][] }[];
  points?: {
    kernel: number;
    calls: number;
    duration: Cell;
    flops: Cell;
    l1: Cell;
    l2: Cell;
    hbm: Cell;
    lds: Cell;
    kinds: Cell[];
    bandwidth: Cell[];
  }[];
  statistics?: { kernel: number; count: number; sum: number; mean: Cell; median: Cell; share: Cell }[];
}

/** Dispatches that are in no value of these metrics, because they lack some of the counters. */
export interface LeftOut {
  ids: string[];
  metrics: string[];
  counters: string[];
  dispatches: number;
  of: number;
  kernels: { kernel: string; dispatches: number; of: number }[];
}

export interface TableOfDocument {
  id: string;
  block: string;
  title: string;
  columns: string[];
  rows: { id?: string; slug?: string; cells: Cell[]; error?: number }[];
  left_out?: LeftOut[];
}

export type Roof = [[number, number], [number, number], number];

export interface Run {
  schema: string;
  workloads: {
    path: string;
    arch: string;
    gpu_model: string;
    workload_name: string;
    command: string;
    dispatches: number;
    kernels: number;
    warnings: string[];
  }[];
  normal_unit: string;
  time_unit: string;
  ids: string;
  ratio: string;
  compat: string | null;
  notes: string[];
  tables: TableOfDocument[];
  roofline_ceilings_dev0?: Record<string, Record<string, Roof>>;
  roofline_uncounted?: string[];
  roofline?: {
    definition: string;
    device: string;
    data_types: string[];
    /** What this hardware's roofs and levels are called, where AMD's names are not its own. */
    names?: Record<string, string>;
  };
  findings: Finding[];
  /** What cannot be, and the titles of the findings that rest on it. */
  implausible: { check: string; text: string; withheld: string[] }[];
  not_judged: { slug: string; title: string; missing: string[]; collect: string[] }[];
  rules: number;
  not_computable: { id: string; slug: string; metric: string; missing: string[]; apart?: string[]; reason: string }[];
  /** Lines of source around those that were sampled: number from 1, text. */
  pc_sources?: { file: string; lines: [number, string][] }[];
  page: Page;
}

export interface Report extends Run {
  runs?: Run[];
}

/** A number as the JSON has it: "inf" and "-inf" are texts, null is no number. */
export function numeric(cell: Cell | undefined): number {
  if (typeof cell === 'number') return cell;
  if (cell === 'inf') return Infinity;
  if (cell === '-inf') return -Infinity;
  return NaN;
}
