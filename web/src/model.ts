// From a choice of kernels, dispatches and normalisation to evaluated tables: what the command line computes with -k, -d,
// --gpu-id, -n and -t.

import {
  numeric,
  type Cell,
  type LeftOut,
  type Metric,
  type Page,
  type Roof,
  type Run,
  type TableOfPage,
} from './document';
import { Program, quantile, type Evaluation } from './program';

export interface Choice {
  /** Names of kernels; null: all. */
  kernels: ReadonlySet<string> | null;
  /** As behind -d: "3 5:7 > 30"; empty: all. */
  dispatches: string;
  gpus: ReadonlySet<number> | null;
  normalisation: string;
  timeUnit: string;
}

export const kTimeUnits: Record<string, number> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };

export interface Row {
  id: string;
  metric: Metric;
  channel: number;
  cells: Cell[];
  /** Half of the 95 % confidence interval of the mean, from repeats; null: not known. */
  error: number | null;
  /** False: nothing but a peak. */
  hasValue: boolean;
  /** It rests on a count that was extrapolated from a part of the GPU's units. */
  extrapolated: boolean;
}

export interface Table {
  from: TableOfPage;
  title: string;
  rows: Row[];
  hasValue: boolean;
  /** Dispatches that lack counters, of those chosen; the metrics without a value have none left. */
  leftOut: LeftOut[];
}

export interface KernelRow {
  kernel: number;
  name: string;
  count: number;
  sum: number;
  mean: number;
  median: number;
  share: number;
}

export type Level = 'hbm' | 'l2' | 'l1' | 'lds';
export const kLevels: Level[] = ['hbm', 'l2', 'l1', 'lds'];

export interface Point {
  kernel: string;
  dispatch: number | null;
  calls: number;
  duration: number;
  share: number;
  performance: number;
  intensity: Record<Level, number>;
  /** GB/s at each level. */
  bandwidth: Record<Level, number>;
  /** The data type that did most of the FLOPs; empty for a kernel without any. */
  type: string;
}

/** Everything shown of one run under one choice. */
export interface View {
  tables: Table[];
  kernels: KernelRow[];
  /** Rows of the dispatches that pass -d and --gpu-id, and of those that pass the choice of kernels too. */
  listed: Uint32Array;
  rows: Uint32Array;
  durations: Float64Array;
  kernelPoints: Point[];
  dispatchPoints: Point[];
  /** Why there is nothing, for people. */
  nothing: string;
}

/** "kernel.kd" and "kernel [clone .kd]" are kernel. */
export function plainName(name: string): string {
  const suffix = [' [clone .kd]', ' (.kd)', '.kd'].find((end) => name.length > end.length && name.endsWith(end));
  return suffix === undefined ? name : name.slice(0, -suffix.length);
}

/** Ranges of dispatch ids, or a sentence about what is wrong. */
export function parseDispatches(text: string): [number, number][] | string {
  const ranges: [number, number][] = [];
  const words = text
    .replaceAll('>', ' > ')
    .split(/[\s,]+/)
    .filter((word) => word !== '');
  for (let i = 0; i < words.length; ++i) {
    if (words[i] === '>') {
      const after = words[++i] ?? '';
      if (!/^-?\d+$/.test(after)) return "expected a dispatch id behind '>'";
      ranges.push([Number(after) + 1, Infinity]);
      continue;
    }
    const range = /^(-?\d+)(?:[:-](-?\d+))?$/.exec(words[i]);
    const first = Number(range?.[1]);
    const last = Number(range?.[2] ?? range?.[1]);
    if (range === null || last < first) return `'${words[i]}' is no dispatch id, range like 2:5 or '> n'`;
    ranges.push([first, last]);
  }
  return ranges;
}

export function normalised(text: string, normalisation: string): string {
  const words = normalisation.replace('_', ' ');
  return text.replace('per normUnit', words).replace('$norm', words);
}

/** Whether a metric is what was looked for, in lower case: by id, slug or name. */
export function matches(row: Row, wanted: string): boolean {
  return wanted === '' || `${row.id} ${row.metric.slug} ${row.metric.name}`.toLowerCase().includes(wanted);
}

/** One run, ready to be looked at under any choice. */
export class Model {
  readonly page: Page;
  readonly #program: Program | null;
  #last: { key: string; evaluation: Evaluation; shared: Omit<View, 'tables'> } | null = null;

  constructor(readonly run: Run) {
    this.page = run.page;
    this.#program = run.page.nodes === undefined ? null : new Program(run.page);
  }

  /** False: the run is too large to be evaluated here; kernels (the longest) and normalisation can be chosen. */
  get evaluates(): boolean {
    return this.#program !== null;
  }

  get name(): string {
    return this.run.workloads[0].path;
  }

  get gpus(): number[] {
    return [...new Set(this.page.dispatches?.gpu ?? [])].sort((a, b) => a - b);
  }

  get roofs(): Record<string, Record<string, Roof>> {
    return this.run.roofline_ceilings_dev0 ?? {};
  }

  view(choice: Choice): View {
    return this.#program === null ? this.#fixedView(choice) : this.#computedView(choice, this.#program);
  }

  #chosen(choice: Choice): (kernel: number) => boolean {
    if (choice.kernels === null) return () => true;
    const plain = new Set([...choice.kernels].map(plainName));
    const chosen = this.page.kernel_names.map(
      (name) => choice.kernels?.has(name) === true || plain.has(plainName(name)),
    );
    return (kernel) => chosen[kernel];
  }

  /** Of the chosen dispatches, those that metrics of the table leave out. */
  #leftOut(from: TableOfPage, rows: Uint32Array): LeftOut[] {
    const { page } = this;
    const kernel = page.dispatches?.kernel ?? [];
    const chosen = new Set(rows);
    return (from.left_out ?? []).flatMap(({ ids, metrics, counters, dispatches }) => {
      const left = dispatches.filter((row) => chosen.has(row));
      if (left.length === 0 || left.length === rows.length) return [];
      const count = (of: Iterable<number>) => {
        const counts = new Map<number, number>();
        for (const row of of) counts.set(kernel[row], (counts.get(kernel[row]) ?? 0) + 1);
        return counts;
      };
      const all = count(rows);
      const kernels = [...count(left)]
        .map(([k, number]) => ({ kernel: page.kernel_names[k], dispatches: number, of: all.get(k) ?? 0 }))
        .sort((a, b) => b.dispatches - a.dispatches);
      return [{ ids, metrics, counters, dispatches: left.length, of: rows.length, kernels }];
    });
  }

  /** The same of a page without dispatches, for all of them or for one kernel. */
  #fixedLeftOut(from: TableOfPage, only: number | null): LeftOut[] {
    const all = this.run.tables.find((table) => table.id === from.id)?.left_out ?? [];
    if (only === null) return all;
    return all.flatMap((each) =>
      each.kernels
        .filter(({ kernel, dispatches, of }) => kernel === this.page.kernel_names[only] && dispatches < of)
        .map((one) => ({ ...each, dispatches: one.dispatches, of: one.of, kernels: [one] })),
    );
  }

  #tables(choice: Choice, value: (place: number) => Cell, leftOut: (from: TableOfPage) => LeftOut[]): Table[] {
    const { page } = this;
    const divisor = kTimeUnits[choice.timeUnit];
    const tables: Table[] = page.tables.map((from) => ({
      from,
      title: normalised(from.title, choice.normalisation),
      hasValue: false,
      leftOut: leftOut(from),
      rows: from.rows.map((row) => {
        const metric = page.metrics[row.metric];
        const unit = metric.unit === 'ns' ? choice.timeUnit : normalised(metric.unit, choice.normalisation);
        const cells = row.cells.map((cell, c) => (from.columns[c].role === 'unit' ? unit : cell));
        return {
          id: row.id,
          metric,
          channel: row.channel ?? -1,
          cells,
          error: null,
          hasValue: false,
          extrapolated: row.extrapolated === true,
        };
      }),
    }));
    for (let i = 0; i < page.places.length; i += 3) {
      const table = tables[page.places[i]];
      const row = table.rows[page.places[i + 1]];
      const c = page.places[i + 2];
      const cell = value(i / 3);
      if (c === row.cells.length) {
        if (typeof cell === 'number' && Number.isFinite(cell))
          row.error = row.metric.unit === 'ns' ? cell / divisor : cell;
        continue;
      }
      row.cells[c] = typeof cell === 'number' && row.metric.unit === 'ns' ? cell / divisor : cell;
      if (cell !== null && table.from.columns[c].key !== 'peak') row.hasValue = table.hasValue = true;
    }
    return tables;
  }

  #computedView(choice: Choice, program: Program): View {
    // Normalisation and time unit need nothing new of the dispatches.
    const key = JSON.stringify([
      choice.kernels === null ? null : [...choice.kernels],
      choice.dispatches,
      choice.gpus === null ? null : [...choice.gpus],
    ]);
    if (this.#last?.key !== key) this.#last = { key, ...this.#select(choice, program) };
    const { evaluation, shared } = this.#last;
    const values = this.page.values?.[this.page.normalisations.indexOf(choice.normalisation)] ?? [];
    const cellAt = (place: number): Cell => {
      const cell = shared.rows.length === 0 ? null : evaluation.cell(values[place]);
      // Something by 0 is no value but under --compat.
      return typeof cell === 'number' && !Number.isFinite(cell) && this.run.compat === null ? null : cell;
    };
    const tables = this.#tables(choice, cellAt, (from) => this.#leftOut(from, shared.rows));
    return { tables, ...shared };
  }

  #select(choice: Choice, program: Program): { evaluation: Evaluation; shared: Omit<View, 'tables'> } {
    const { page } = this;
    const dispatches = page.dispatches;
    if (dispatches === undefined) throw new Error('no dispatches');
    const ranges = parseDispatches(choice.dispatches);
    const inRange = (id: number) =>
      typeof ranges === 'string' || ranges.length === 0 || ranges.some(([first, last]) => id >= first && id <= last);
    const chosen = this.#chosen(choice);
    const listed = Uint32Array.from(dispatches.id.keys()).filter(
      (row) => inRange(dispatches.id[row]) && (choice.gpus === null || choice.gpus.has(dispatches.gpu[row])),
    );
    const rows = listed.filter((row) => chosen(dispatches.kernel[row]));
    const all = program.over(Uint32Array.from(dispatches.id.keys()));
    const durations = all.column(dispatches.duration);
    const evaluation = program.over(rows);
    const kernels = this.#kernels(listed, durations);
    // Upstream takes what it cannot compute for 0.
    const column = (node: number) =>
      node === 0 && this.run.compat !== null ? new Float64Array(rows.length) : evaluation.column(node);
    const inputs = {
      duration: column(dispatches.duration),
      flops: column(dispatches.flops),
      l1: column(dispatches.l1),
      l2: column(dispatches.l2),
      hbm: column(dispatches.hbm),
      // Upstream has no points of the LDS.
      lds: evaluation.column(dispatches.lds),
    };
    const kinds = dispatches.kinds.map((node) => evaluation.column(node));
    const shared = {
      kernels,
      listed,
      rows,
      durations,
      kernelPoints: this.#points(rows, inputs, kinds, true),
      dispatchPoints: this.#points(rows, inputs, kinds, false),
      nothing: rows.length === 0 ? 'No dispatch passes the filters.' : '',
    };
    return { evaluation, shared };
  }

  #fixedView(choice: Choice): View {
    const { page } = this;
    const chosen = this.#chosen(choice);
    const only = choice.kernels === null ? null : page.kernel_names.findIndex((_, kernel) => chosen(kernel));
    const fixed = page.fixed?.find((each) => each.kernel === only);
    const values = fixed?.values[page.normalisations.indexOf(choice.normalisation)];
    // Values of time come in the unit of the command line.
    const given = kTimeUnits[this.run.time_unit];
    const total = (page.statistics ?? []).reduce((sum, kernel) => sum + kernel.sum, 0);
    const points = (page.points ?? [])
      .filter((point) => chosen(point.kernel))
      .map((point) => ({
        kernel: page.kernel_names[point.kernel],
        dispatch: null,
        calls: point.calls,
        duration: numeric(point.duration),
        share: (numeric(point.duration) / total) * 100,
        performance: numeric(point.flops),
        intensity: { hbm: numeric(point.hbm), l2: numeric(point.l2), l1: numeric(point.l1), lds: numeric(point.lds) },
        bandwidth: Object.fromEntries(kLevels.map((level, i) => [level, numeric(point.bandwidth[i])])) as Record<
          Level,
          number
        >,
        type: this.#mainType(point.kinds.map(numeric)),
      }));
    const cellAt = (place: number): Cell => {
      const cell = values?.[place] ?? null;
      const from = page.tables[page.places[place * 3]].rows[page.places[place * 3 + 1]];
      return typeof cell === 'number' && page.metrics[from.metric].unit === 'ns' ? cell * given : cell;
    };
    return {
      tables: this.#tables(choice, cellAt, (from) => this.#fixedLeftOut(from, only)),
      kernels: (page.statistics ?? []).map((row) => ({
        kernel: row.kernel,
        name: page.kernel_names[row.kernel],
        count: row.count,
        sum: row.sum,
        mean: numeric(row.mean),
        median: numeric(row.median),
        share: numeric(row.share),
      })),
      listed: new Uint32Array(),
      rows: new Uint32Array(),
      durations: new Float64Array(),
      kernelPoints: points,
      dispatchPoints: [],
      nothing: fixed === undefined ? 'This kernel was not evaluated for this page; use tacho analyze -k.' : '',
    };
  }

  /** Of FLOPs by kind: the data type with the most. */
  #mainType(flops: number[]): string {
    let best = '';
    let most = 0;
    const types = this.page.flop_kinds;
    for (const type of types) {
      const sum = flops.reduce((all, value, k) => (types[k] === type && value > 0 ? all + value : all), 0);
      if (sum > most) [best, most] = [type, sum];
    }
    return best;
  }

  #kernels(listed: Uint32Array, durations: Float64Array): KernelRow[] {
    const of = new Map<number, { values: number[]; count: number }>();
    for (const row of listed) {
      const kernel = this.page.dispatches?.kernel[row] ?? 0;
      let group = of.get(kernel);
      if (group === undefined) of.set(kernel, (group = { values: [], count: 0 }));
      ++group.count;
      if (!Number.isNaN(durations[row])) group.values.push(durations[row]);
    }
    let total = 0;
    const rows = [...of]
      .sort(([a], [b]) => a - b)
      .map(([kernel, { values, count }]) => {
        const sum = values.reduce((a, b) => a + b, 0);
        total += sum;
        const mean = values.length === 0 ? NaN : sum / values.length;
        const median = quantile(Float64Array.from(values), 0.5);
        return { kernel, name: this.page.kernel_names[kernel], count, sum, mean, median, share: NaN };
      });
    for (const row of rows) row.share = (row.sum / total) * 100;
    return rows.sort((a, b) => b.sum - a.sum || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  #points(
    rows: Uint32Array,
    inputs: Record<'duration' | 'flops' | Level, Float64Array>,
    kinds: Float64Array[],
    byKernel: boolean,
  ): Point[] {
    const { page, run } = this;
    const compat = run.compat !== null;
    // Sums over the dispatches that have both quantities; upstream adds up whatever there is.
    interface Pair {
      above: number;
      below: number;
      count: number;
    }
    const pair = (): Pair => ({ above: 0, below: 0, count: 0 });
    const add = (to: Pair, above: number, below: number) => {
      if (!compat && (Number.isNaN(above) || Number.isNaN(below))) return;
      to.above += above;
      to.below += below;
      ++to.count;
    };
    const ratio = ({ above, below, count }: Pair) => (below === 0 || count === 0 ? (compat ? 0 : NaN) : above / below);
    const ofAll = ({ above, below, count }: Pair) => (below === 0 || count === 0 ? NaN : above / below);
    const groups: {
      row: number;
      calls: number;
      duration: number;
      flops: number[];
      pairs: Record<Level | 'rate', Pair>;
      rates: Record<Level, Pair>;
    }[] = [];
    const byName = new Map<string, (typeof groups)[number]>();
    let total = 0;
    rows.forEach((row, i) => {
      const name = page.kernel_names[page.dispatches?.kernel[row] ?? 0];
      let group = byKernel ? byName.get(name) : undefined;
      if (group === undefined) {
        group = {
          row,
          calls: 0,
          duration: 0,
          flops: kinds.map(() => 0),
          pairs: { hbm: pair(), l2: pair(), l1: pair(), lds: pair(), rate: pair() },
          rates: { hbm: pair(), l2: pair(), l1: pair(), lds: pair() },
        };
        groups.push(group);
        byName.set(name, group);
      }
      ++group.calls;
      if (!Number.isNaN(inputs.duration[i])) {
        group.duration += inputs.duration[i];
        total += inputs.duration[i];
      }
      for (const level of kLevels) add(group.pairs[level], inputs.flops[i], inputs[level][i]);
      add(group.pairs.rate, inputs.flops[i], inputs.duration[i]);
      for (const level of kLevels) {
        if (Number.isNaN(inputs[level][i]) || Number.isNaN(inputs.duration[i])) continue;
        group.rates[level].above += inputs[level][i];
        group.rates[level].below += inputs.duration[i];
        ++group.rates[level].count;
      }
      kinds.forEach((kind, k) => (group.flops[k] += Number.isNaN(kind[i]) ? 0 : kind[i]));
    });
    return groups
      .map((group) => ({
        kernel: page.kernel_names[page.dispatches?.kernel[group.row] ?? 0],
        dispatch: byKernel ? null : (page.dispatches?.id[group.row] ?? 0),
        calls: group.calls,
        duration: group.duration,
        share: (group.duration / total) * 100,
        performance: ratio(group.pairs.rate),
        intensity: {
          hbm: ratio(group.pairs.hbm),
          l2: ratio(group.pairs.l2),
          l1: ratio(group.pairs.l1),
          lds: ratio(group.pairs.lds),
        },
        bandwidth: {
          hbm: ofAll(group.rates.hbm),
          l2: ofAll(group.rates.l2),
          l1: ofAll(group.rates.l1),
          lds: ofAll(group.rates.lds),
        },
        type: this.#mainType(group.flops),
      }))
      .sort((a, b) => b.duration - a.duration);
  }
}

export interface Bound {
  roof: string;
  limit: number;
  reached: number;
  /** The kernel has no FLOPs: limit is GB/s. */
  bandwidth: boolean;
}

/** Above this share of a roof, in percent, a point is worth an explanation. */
export const kAboveRoof = 102;

/** The roof that lies lowest above the point, and what was reached of it in percent; without FLOPs that of the level used most. */
export function boundOf(point: Point, roofs: Record<string, Roof>): Bound | null {
  let best: Bound | null = null;
  const isLevel = (roof: string): roof is Level => (kLevels as string[]).includes(roof);
  if (point.performance === 0) {
    for (const [roof, [, , peak]] of Object.entries(roofs)) {
      if (!isLevel(roof)) continue;
      const reached = (point.bandwidth[roof] / peak) * 100;
      if (reached > 0 && Number.isFinite(reached) && (best === null || reached > best.reached))
        best = { roof, limit: peak, reached, bandwidth: true };
    }
    return best;
  }
  if (!(point.performance > 0)) return null;
  const compute = (roofs.mfma?.[2] ?? 0) > (roofs.valu?.[2] ?? 0) ? 'mfma' : 'valu';
  for (const [roof, [, , peak]] of Object.entries(roofs)) {
    let limit = peak;
    if (isLevel(roof)) limit *= point.intensity[roof];
    else if (roof !== compute) continue;
    if (!(limit > 0) || !Number.isFinite(limit)) continue;
    if (best === null || limit < best.limit)
      best = { roof, limit, reached: (point.performance / limit) * 100, bandwidth: false };
  }
  return best;
}

/** A metric's cell by slug and column key. */
export function find(view: View, slug: string, key = 'avg'): Cell {
  for (const table of view.tables) {
    const row = table.rows.find((each) => each.metric.slug === slug);
    if (row === undefined) continue;
    const c = table.from.columns.findIndex(
      (column) => column.key === key || (key === 'avg' && column.role === 'value'),
    );
    return c < 0 ? null : row.cells[c];
  }
  return null;
}
