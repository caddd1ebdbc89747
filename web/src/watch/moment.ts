// What tacho tells of a moment (/moment), and what has changed since an earlier one: as the page of the terminal has it.

/** A row of sums. */
export interface Row {
  kind: string;
  name: string;
  grid?: number[];
  group?: number[] | null;
  count: number;
  bytes?: number;
  total_ns?: number | null;
  at_most_ns?: number;
  interval_95_ns?: number | null;
  hosts?: number;
  /** [bucket of times, operations for which the timed ones in it stand] */
  buckets?: number[][];
  /** Times, ns, each for as many operations as it stands for. */
  stood_ns?: number;
}
/** Where threads of the host spend processor time outside of the kernel: samples of the last half minute. */
export interface HostCode {
  samples: number;
  processors: number;
  lines: { function: string; file: string; line: number | null; module: string; share: number }[];
}
export interface Reading {
  gpu: number;
  name: string;
  unit: string;
  value: number;
}
export interface Cost {
  share: number;
  low: number;
  high: number;
}
export interface Process {
  pid: number;
  name: string;
  uses_devices: boolean;
  launches: number;
  copied_bytes: number;
  time_ns: number;
  ended: boolean;
}
/** Another watch, of which this moment is a sum. */
export interface Host {
  address: string;
  name: string;
  title: string;
  ago_s: number | null;
  problem: string;
  seconds: number;
  launches: number;
  time_ns: number;
  processes: number;
  host_ns: number | null;
  cost: Cost | null;
  timing: boolean;
  gpus: Reading[];
}
export interface Moment {
  run: string;
  generation?: number;
  title: string;
  host: string;
  seconds: number;
  rows: Row[];
  processes: Process[];
  gpus: Reading[];
  hosts?: Host[];
  host_code?: HostCode;
  host_ns: number | null;
  budget: number;
  timing: boolean;
  cost: Cost | null;
  notes: string[];
}

export const onDevice = (row: Row): boolean => row.kind === 'kernel' || row.kind === 'graph';

/** "vecCopy 4096/256" */
export function title(row: Row): string {
  if (row.grid === undefined) return row.name;
  const sizes = (of: number[]): string => {
    const last = of[2] > 1 ? 3 : of[1] > 1 ? 2 : 1;
    return of.slice(0, last).join('x');
  };
  return `${row.name} ${sizes(row.grid)}${row.group ? `/${sizes(row.group)}` : ''}`;
}

const standFor = (row?: Row): number => (row?.buckets ?? []).reduce((sum, [, operations]) => sum + operations, 0);

/**
 * The estimated time, ns, of the operations since an earlier moment: their number by the mean of those that were timed
 * meanwhile, or where there are none, of all before. Where there are only bounds, by theirs.
 */
export function timeSince(row: Row, was?: Row): number {
  const operations = row.count - (was?.count ?? 0);
  if (operations <= 0) return 0;
  const all = standFor(row);
  if (all === 0) return (operations * (row.at_most_ns ?? 0)) / row.count;
  const since = all - standFor(was);
  const time = (row.stood_ns ?? 0) - (was?.stood_ns ?? 0);
  return since > 0 && time >= 0 ? (operations * time) / since : (operations * (row.stood_ns ?? 0)) / all;
}

/** Whether sums of both may be compared: no watch began or came between them. */
export const comparable = (before: Moment | null, now: Moment): before is Moment =>
  before !== null && before.run === now.run && before.generation === now.generation;

export interface Line {
  row: Row;
  title: string;
  /** Operations a second, and of the time of all kernels the share, since the earlier moment. */
  rate: number;
  share: number | null;
  time: number | null;
  bound: boolean;
  /** Half the 95 % interval as a share. */
  error: number | null;
}
export interface Pace {
  launches: number;
  bytes: number;
  waits: number;
  /** Seconds in a second. */
  kernels: number;
  copies: number;
  waiting: number;
}
export interface Change {
  seconds: number;
  pace: Pace | null;
  kernels: Line[];
  others: Line[];
}

const key = (row: Row): string => `${row.kind} ${title(row)}`;

/** What happened since `before`; without it, no rates. */
export function change(before: Moment | null, now: Moment): Change {
  const known = comparable(before, now);
  const earlier = new Map(known ? before.rows.map((row) => [key(row), row]) : []);
  const seconds = known ? now.seconds - before.seconds : 0;
  const pace: Pace = { launches: 0, bytes: 0, waits: 0, kernels: 0, copies: 0, waiting: 0 };
  const made = now.rows.map((row) => {
    const was = earlier.get(key(row));
    const count = row.count - (was?.count ?? 0);
    const time = timeSince(row, was);
    const line: Line = {
      row,
      title: title(row),
      rate: seconds > 0 ? count / seconds : NaN,
      share: null,
      time: row.total_ns ?? row.at_most_ns ?? null,
      bound: (row.total_ns ?? null) === null && row.at_most_ns !== undefined,
      error:
        (row.interval_95_ns ?? null) !== null && (row.total_ns ?? 0) > 0
          ? (row.interval_95_ns as number) / (row.total_ns as number)
          : null,
    };
    if (seconds > 0) {
      if (onDevice(row)) {
        pace.launches += count / seconds;
        pace.kernels += (time * 1e-9) / seconds;
      } else if (row.kind === 'copy' || row.kind === 'fill') {
        pace.copies += (time * 1e-9) / seconds;
        if (row.kind === 'copy') pace.bytes += ((row.bytes ?? 0) - (was?.bytes ?? 0)) / seconds;
      } else if (row.kind === 'wait') {
        pace.waits += count / seconds;
        pace.waiting += (time * 1e-9) / seconds;
      }
    }
    return { line, time };
  });
  const all = made.reduce((sum, { line, time }) => sum + (onDevice(line.row) ? time : 0), 0);
  for (const { line, time } of made) if (seconds > 0 && all > 0 && onDevice(line.row)) line.share = time / all;
  const lines = made.map(({ line }) => line);
  return {
    seconds,
    pace: seconds > 0 ? pace : null,
    kernels: lines.filter(({ row }) => onDevice(row)),
    others: lines.filter(({ row }) => !onDevice(row)),
  };
}

const lastPart = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** "app.c:17"; of code without lines the file that it is in. */
export const place = (line: HostCode['lines'][number]): string =>
  line.line === null ? lastPart(line.module) : `${lastPart(line.file)}:${line.line}`;

export type Order = 'now' | 'rate' | 'launches' | 'time' | 'average' | 'name';

/** The lines in an order, the largest first; names from A on. */
export function sorted(lines: Line[], order: Order): Line[] {
  const value = (line: Line): number => {
    if (order === 'now') return line.share ?? -1;
    if (order === 'rate') return line.rate;
    if (order === 'launches') return line.row.count;
    if (line.time === null) return -1;
    return order === 'time' ? line.time : line.time / line.row.count;
  };
  const by = (a: number, b: number): number => (Number.isNaN(a) ? -1 : a) - (Number.isNaN(b) ? -1 : b);
  return [...lines].sort((a, b) => {
    if (order !== 'name') {
      const most = by(value(b), value(a)) || by(b.time ?? -1, a.time ?? -1);
      if (most !== 0) return most;
    }
    return a.title < b.title ? -1 : a.title > b.title ? 1 : 0;
  });
}

/** Of one GPU, or of several of which each may have idled, the least share of time without work; null where it cannot be told. */
export function idle(pace: Pace, now: Moment): number | null {
  const gpus = new Set(now.gpus.map((reading) => reading.gpu)).size;
  const rest = 1 - pace.kernels - pace.copies;
  return now.hosts !== undefined || gpus > 1 || !now.timing || rest <= 0 ? null : rest;
}

export interface Gpu {
  host: string;
  gpu: number;
  values: Record<string, Reading>;
}
/** A line for each GPU, those of other machines with their names. */
export function gpus(now: Moment): Gpu[] {
  const all: Gpu[] = [];
  const add = (host: string, readings: Reading[]): void => {
    const found = new Map<number, Gpu>();
    for (const reading of readings) {
      let one = found.get(reading.gpu);
      if (one === undefined) {
        one = { host, gpu: reading.gpu, values: {} };
        found.set(reading.gpu, one);
        all.push(one);
      }
      one.values[reading.name] = reading;
    }
  };
  add('', now.gpus);
  for (const host of now.hosts ?? []) add(host.name || host.address, host.gpus);
  return all;
}

interface Costs {
  host_ns: number | null;
  seconds: number;
  timing: boolean;
  cost: Cost | null;
}
/** What watching takes of the host and of the pace, in words; `pace`: how the latter begins. */
function costs(of: Costs, pace: string): string[] {
  const parts: string[] = [];
  if (of.host_ns !== null && of.seconds > 0)
    parts.push(`host ${((of.host_ns * 1e-9 * 100) / of.seconds).toFixed(2)} %`);
  if (!of.timing) parts.push('counts only');
  else if (of.cost !== null)
    parts.push(`${pace} ${(of.cost.low * 100).toFixed(1)} % to ${(of.cost.high * 100).toFixed(1)} %`);
  return parts;
}
/** What watching costs a host of several. */
export const hostCost = (host: Host): string => costs(host, 'pace').join(', ');
/** And what the budget is. */
export function cost(now: Moment): string {
  const parts = costs(now, 'of the pace');
  if (now.timing)
    parts.push(now.cost !== null ? `budget ${(now.budget * 100).toFixed(1)} %` : 'of the pace: not measured yet');
  return parts.join(', ');
}

/** What `now` and the moment `since` both have, as it was then, by its key. */
export function earlierOnes<T, K>(
  since: Moment | null,
  now: Moment,
  of: (moment: Moment) => T[],
  key: (one: T) => K,
): Map<K, T> {
  return new Map(comparable(since, now) ? of(since).map((one) => [key(one), one]) : []);
}
