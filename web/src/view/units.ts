// Times and ticks as people read them. Full precision stands in tooltips.

import { short, shownWhole } from '../format';

export { short, shownWhole };

/** "1.234 ms": four digits. */
export function time(ns: number): string {
  if (!Number.isFinite(ns)) return '—';
  const size = Math.abs(ns);
  if (size === 0) return '0';
  const [divisor, unit] =
    size < 999.95 ? [1, 'ns'] : size < 999.95e3 ? [1e3, 'us'] : size < 999.95e6 ? [1e6, 'ms'] : [1e9, 's'];
  const value = ns / divisor;
  if (unit === 'ns') return `${Number(value.toFixed(1))} ns`;
  if (unit === 's' && size >= 9999.5e9) return `${shownWhole(value)} s`;
  return `${value.toPrecision(4)} ${unit}`;
}

/** All digits: "1,234,567 ns". */
export const exactTime = (ns: number): string =>
  `${Number.isInteger(ns) ? ns.toLocaleString('en-US') : ns.toLocaleString('en-US', { maximumFractionDigits: 3 })} ns`;

/** A moment, in seconds, milliseconds … after the begin of the run, with the digits that `step` (ns) needs. */
export function moment(ns: number, step: number): string {
  if (ns === 0) return '0';
  const size = Math.max(Math.abs(ns), step);
  const [divisor, unit] = size < 1e3 ? [1, 'ns'] : size < 1e6 ? [1e3, 'us'] : size < 1e9 ? [1e6, 'ms'] : [1e9, 's'];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(divisor / step) - 1e-9)));
  return `${(ns / divisor).toFixed(digits)} ${unit}`;
}

/** A round duration at a tick: "5 us". */
export function tickTime(ns: number): string {
  const size = Math.abs(ns);
  const [divisor, unit] = size < 1e3 ? [1, 'ns'] : size < 1e6 ? [1e3, 'us'] : size < 1e9 ? [1e6, 'ms'] : [1e9, 's'];
  return size === 0 ? '0' : `${Number((ns / divisor).toPrecision(6))} ${unit}`;
}

/** The distance of ticks: 1, 2 or 5 times a power of ten, at least `least` ns. */
export function tickStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-3)));
  for (const factor of [1, 2, 5]) if (power * factor >= least * (1 - 1e-12)) return power * factor;
  return power * 10;
}

export function percent(part: number, whole: number): string {
  if (!(whole > 0)) return '—';
  const share = (100 * part) / whole;
  if (share === 0) return '0 %';
  if (share < 0.05) return '<0.1 %';
  return `${share >= 99.95 && share < 100 ? '>99.9' : share.toFixed(1)} %`;
}

export function bytes(count: number): string {
  if (!Number.isFinite(count)) return '—';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let at = 0;
  let value = count;
  while (Math.abs(value) >= 1023.5 && at + 1 < units.length) {
    value /= 1024;
    ++at;
  }
  return `${at === 0 ? value : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)} ${units[at]}`;
}

/** A value of a counter with its unit. */
export function reading(value: number, unit: string | undefined): string {
  if (!Number.isFinite(value)) return '—';
  if (unit === 'B' && value >= 0) return bytes(Number(value.toPrecision(5)));
  const text =
    Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3)
      ? short(value)
      : String(Number(value.toPrecision(5)));
  return unit ? `${text} ${unit}` : text;
}

/** Text on one line and of bounded length, for labels and tips: control characters become spaces, the middle is left out. */
export function oneLine(text: string, most = 600): string {
  const cut =
    text.length <= most
      ? text
      : `${text.slice(0, Math.ceil(most * 0.6))}…${text.slice(text.length - Math.floor(most * 0.4))}`;
  return cut.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ');
}
