// What changed from the first of several runs to the others: kernels' times, and the metrics that grew or shrank most, as tacho
// analyze -p A -p B prints them (metric/render/text/screen.cpp).

import { numeric, type Cell } from './document';
import { plainName, type Choice, type Model, type Row, type View } from './model';

export interface KernelChange {
  name: string;
  /** By run; null where the run did not launch it. */
  means: (number | null)[];
  sums: (number | null)[];
  /** Of the second run's durations against the first's; null where either has fewer than 8. */
  p: number | null;
}
export interface MetricChange {
  row: Row;
  unit: Cell;
  values: number[];
  /** Against the first run; null for the first. */
  percents: (number | null)[];
  /** Whether the second differs by more than the 95 % intervals of both; null where repeats do not tell. */
  sure: boolean | null;
}

/** Calls of a side that a comparison of its durations needs. */
const kLeastCalls = 8;

/** Two-sided p of the Mann-Whitney U test, normal approximation with ties, as analysis/diff.h has it; null for too few values. */
export function mannWhitney(a: readonly number[], b: readonly number[]): number | null {
  if (a.length < kLeastCalls || b.length < kLeastCalls) return null;
  const all = [...a.map((value) => ({ value, first: true })), ...b.map((value) => ({ value, first: false }))].sort(
    (x, y) => x.value - y.value,
  );
  let [ranks, ties] = [0, 0];
  for (let i = 0; i < all.length;) {
    let end = i;
    while (end < all.length && all[end].value === all[i].value) ++end;
    const rank = (i + 1 + end) / 2;
    for (let k = i; k < end; ++k) if (all[k].first) ranks += rank;
    ties += (end - i) ** 3 - (end - i);
    i = end;
  }
  const [n, m, whole] = [a.length, b.length, all.length];
  const u = ranks - (n * (n + 1)) / 2;
  const variance = ((n * m) / 12) * (whole + 1 - ties / (whole * (whole - 1)));
  if (!(variance > 0)) return 1;
  const z = Math.max(0, Math.abs(u - (n * m) / 2) - 0.5) / Math.sqrt(variance);
  return Math.min(1, erfc(z / Math.SQRT2));
}

/** Complementary error function for x >= 0, relative error below 1.2e-7 (Numerical Recipes, erfcc). */
function erfc(x: number): number {
  const t = 1 / (1 + 0.5 * x);
  const terms = [
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
    0.17087277,
  ];
  return t * Math.exp(-x * x + terms.reduceRight((sum, term) => sum * t + term, 0));
}

const durationsOf = (model: Model, view: View, name: string): number[] =>
  [...view.listed].flatMap((row) => {
    const kernel = model.page.dispatches?.kernel[row];
    const duration = view.durations[row];
    return kernel !== undefined && plainName(model.page.kernel_names[kernel]) === name && !Number.isNaN(duration)
      ? [duration]
      : [];
  });

/** Kernels of all runs, those with most time in any run first. */
export function kernelChanges(models: Model[], views: View[]): KernelChange[] {
  const names = [...new Set(views.flatMap((view) => view.kernels.map((kernel) => plainName(kernel.name))))];
  const of = (view: View, name: string) => view.kernels.filter((kernel) => plainName(kernel.name) === name);
  return names
    .map((name): KernelChange => {
      const kernels = views.map((view) => of(view, name));
      const sums = kernels.map((list) => (list.length === 0 ? null : list.reduce((sum, each) => sum + each.sum, 0)));
      const counts = kernels.map((list) => list.reduce((sum, each) => sum + each.count, 0));
      return {
        name,
        sums,
        means: sums.map((sum, i) => (sum === null || counts[i] === 0 ? null : sum / counts[i])),
        p:
          sums[0] === null || sums[1] === null || sums[1] === undefined
            ? null
            : mannWhitney(durationsOf(models[0], views[0], name), durationsOf(models[1], views[1], name)),
      };
    })
    .sort((a, b) => Math.max(...b.sums.map((sum) => sum ?? 0)) - Math.max(...a.sums.map((sum) => sum ?? 0)));
}

export function percentOf(from: number, to: number): number | null {
  if (from === to) return 0;
  if (from === 0) return to > 0 ? Infinity : -Infinity;
  return Number.isFinite(from) && Number.isFinite(to) ? ((to - from) / Math.abs(from)) * 100 : null;
}

/** The metrics of a kernel by how many times they grew or shrank; equal numbers of several tables are one change. */
export function metricChanges(models: Model[], kernel: string, choice: Choice): MetricChange[] {
  const views = models.map((model) => {
    const names = model.page.kernel_names.filter((name) => plainName(name) === kernel);
    return model.view({ ...choice, kernels: new Set(names) });
  });
  const changes: (MetricChange & { size: number })[] = [];
  const seen = new Set<string>();
  for (const table of views[0].tables) {
    if (!table.from.comparable) continue;
    const { columns } = table.from;
    const at = columns.findIndex((column) => column.role === 'value');
    const unit = columns.findIndex((column) => column.role === 'unit');
    const others = views
      .slice(1)
      .map((view) =>
        view.tables.find((each) => each.from.slug === table.from.slug && each.from.block === table.from.block),
      );
    for (const row of table.rows) {
      if (at < 0 || row.channel >= 0) continue;
      const rows = others.map((other) => other?.rows.find((each) => each.metric.slug === row.metric.slug));
      const cells = [
        row.cells[at],
        ...rows.map((each, i) => {
          const c = (others[i]?.from.columns ?? []).findIndex((column) => column.key === columns[at].key);
          return each === undefined || c < 0 ? null : each.cells[c];
        }),
      ];
      const values = cells.map((cell) => numeric(cell));
      let size = 0;
      for (const value of values.slice(1)) {
        if (Number.isNaN(values[0]) || Number.isNaN(value) || value === values[0]) continue;
        const [a, b] = [Math.abs(values[0]), Math.abs(value)];
        size = Math.max(size, a === 0 || b === 0 ? Infinity : Math.abs(Math.log(b / a)));
      }
      const key = values.join(' ');
      if (size === 0 || seen.has(key)) continue;
      seen.add(key);
      const [ours, theirs] = [row.error, rows[0]?.error ?? null];
      changes.push({
        row,
        unit: unit < 0 ? row.metric.unit : row.cells[unit],
        values,
        percents: values.map((value, i) => (i === 0 || Number.isNaN(value) ? null : percentOf(values[0], value))),
        sure: ours === null || theirs === null ? null : Math.abs(values[1] - values[0]) > Math.hypot(ours, theirs),
        size,
      });
    }
  }
  return changes.sort((a, b) => (a.size === b.size ? 0 : b.size - a.size));
}
