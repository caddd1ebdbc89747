// What the columns of a result of SQL mean: their units, and values as people read them or as they stand.

import type { QueryResult, Schema } from './source';
import { bytes, exactTime, oneLine, shownWhole, time, tickStep, tickTime } from './units';

export type Value = string | number | null;
/** time: a moment in ns, as tacho's tables have it; duration: ns. */
export type Meaning = 'time' | 'duration' | 'bytes' | 'percent' | '';

/** By the name of the column: that of tacho's tables, an aggregate of such a one, or a name that says its unit (_ns, _bytes). */
export function meanings(columns: string[], schema: Schema | null): Meaning[] {
  const known = new Map<string, Meaning>();
  for (const table of schema?.tables ?? [])
    for (const { name, type } of table.columns) {
      if (type !== 'time' && type !== 'duration' && type !== 'bytes') continue;
      if (!known.has(name)) known.set(name, type);
    }
  return columns.map((column) => {
    const inner =
      /^(sum|total|avg|mean|median|min|max|any_value|first|last)\((?:distinct )?(?:\w+\.)*"?(\w+)"?\)$/i.exec(column);
    const name = inner?.[2] ?? column;
    const meaning = known.get(name) ?? known.get(name.toLowerCase());
    // A sum or a mean of moments is none.
    if (meaning !== undefined)
      return meaning === 'time' && inner !== null && /^(sum|total)$/i.test(inner[1]) ? '' : meaning;
    if (/(^|_)(start|end|timestamp|at)(_ns)?$/i.test(name) && !/duration/i.test(name)) return 'time';
    if (/(^|_)ns$|(^|_)duration$/i.test(name)) return 'duration';
    if (/(^|_)bytes$/i.test(name)) return 'bytes';
    if (/(^|_)percent$/i.test(name)) return 'percent';
    return '';
  });
}

/** Whether a column holds numbers alone; integers that a double cannot hold are texts of digits. */
export function numbersIn(result: QueryResult): boolean[] {
  return result.columns.map((_, c) => {
    let some = false;
    for (const row of result.rows) {
      const value = row[c];
      if (value === null) continue;
      if (typeof value !== 'number' && !(result.types[c] === 'integer' && /^-?\d+$/.test(value))) return false;
      some = true;
    }
    return some;
  });
}

/** The value for a plot: moments count from the run's beginning. null: nothing to draw. */
export function plotted(value: Value, meaning: Meaning, t0: bigint): number | null {
  if (value === null || value === '') return null;
  if (meaning === 'time' && (typeof value === 'string' || Number.isInteger(value))) {
    try {
      return Number(BigInt(value) - t0);
    } catch {
      return null;
    }
  }
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** As it stands, on one line. */
export const plain = (value: Value): string =>
  value === null
    ? 'NULL'
    : typeof value === 'number' && !Number.isInteger(value)
      ? String(Number(value.toPrecision(12)))
      : oneLine(String(value), 400);

/** "1.234 ms", "2.5 s after the beginning", "1.2 GiB"; what has no unit as it stands. */
export function readable(value: Value, meaning: Meaning, t0: bigint): string {
  const number = plotted(value, meaning, t0);
  if (number === null || meaning === '') return plain(value);
  if (meaning === 'duration') return time(number);
  if (meaning === 'bytes') return bytes(number);
  if (meaning === 'percent') return `${Number(number.toPrecision(5))} %`;
  return fromBeginning(number);
}
/** A moment with all digits: "1.234567890 s". */
export function fromBeginning(ns: number): string {
  const size = Math.abs(ns);
  const [divisor, unit, digits] =
    size < 1e3 ? [1, 'ns', 0] : size < 1e6 ? [1e3, 'us', 3] : size < 1e9 ? [1e6, 'ms', 6] : [1e9, 's', 9];
  return ns === 0 ? '0' : `${(ns / divisor).toFixed(digits)} ${unit}`;
}
/** What a tooltip says beside the value itself. */
export function spelled(value: Value, meaning: Meaning, t0: bigint): string {
  const number = plotted(value, meaning, t0);
  if (number === null) return '';
  if (meaning === 'duration') return `${time(number)} (${exactTime(number)})`;
  if (meaning === 'time') return `${fromBeginning(number)} after the beginning of the run`;
  return meaning === 'bytes' ? `${bytes(number)} (${shownWhole(number)} bytes)` : '';
}

/** The title of an axis; ticks carry the unit. */
export const axisTitle = (column: string, meaning: Meaning): string =>
  meaning === 'time' ? `${oneLine(column, 60)}, since the beginning of the run` : oneLine(column, 60);

/** The distance of ticks: 1, 2 or 5 times a power of ten, of bytes a power of two. */
function stepOf(least: number, meaning: Meaning): number {
  if (meaning === 'time' || meaning === 'duration') return tickStep(Math.max(least, 1e-3));
  if (meaning === 'bytes') return 2 ** Math.max(0, Math.ceil(Math.log2(least)));
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) if (power * factor >= least * (1 - 1e-12)) return power * factor;
  return power * 10;
}
function tickText(value: number, step: number, meaning: Meaning): string {
  if (meaning === 'time' || meaning === 'duration') return tickTime(value);
  if (meaning === 'bytes') return bytes(value);
  const size = Math.abs(value);
  const steps: [number, string][] = [
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e4, 'k'],
  ];
  const [limit, letter] = steps.find(([from]) => size >= from) ?? [1, ''];
  const divisor = letter === 'k' ? 1e3 : limit;
  const digits = Math.max(0, Math.min(12, Math.ceil(-Math.log10(step / divisor) - 1e-9)));
  const text = size !== 0 && size < 1e-4 ? value.toExponential(1) : (value / divisor).toFixed(digits);
  return `${text}${letter}${meaning === 'percent' ? ' %' : ''}`;
}
/** Ticks of an axis from `low` to `high` that are at most `most` in number. */
export function ticks(low: number, high: number, most: number, meaning: Meaning): { at: number; text: string }[] {
  const list: { at: number; text: string }[] = [];
  if (!(high > low)) return list;
  const step = stepOf((high - low) / Math.max(1, most), meaning);
  const first = Math.ceil(low / step - 1e-9);
  for (let i = first; i * step <= high + step * 1e-9 && list.length < 100; ++i)
    list.push({ at: i * step, text: tickText(i * step, step, meaning) });
  return list;
}
