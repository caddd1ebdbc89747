// Numbers for people; full precision stands in tooltips and in the JSON.

import type { Cell } from './document';

const two = new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** "1,234.50"; small ones keep their digits; null is —. */
export function shown(cell: Cell | undefined): string {
  if (cell === null || cell === undefined) return '—';
  if (typeof cell === 'string') return cell === 'inf' ? '∞' : cell === '-inf' ? '−∞' : cell;
  if (Number.isNaN(cell)) return '—';
  if (cell === Infinity) return '∞';
  if (cell === -Infinity) return '−∞';
  if (cell === 0) return '0';
  const size = Math.abs(cell);
  if (size < 1e-4 || size >= 1e15) return cell.toExponential(2);
  if (size < 0.0095) return cell.toFixed(4);
  return two.format(cell);
}

export function shownWhole(x: number): string {
  return Number.isFinite(x) ? whole.format(x) : '—';
}

/** "1.23M": at most five characters of number, for diagrams. */
export function short(x: number): string {
  if (Number.isNaN(x)) return '—';
  if (!Number.isFinite(x)) return x > 0 ? '∞' : '−∞';
  const size = Math.abs(x);
  if (size === 0) return '0';
  if (size < 0.01) return x.toExponential(1);
  const steps = ['', 'k', 'M', 'G', 'T', 'P', 'E'];
  let value = x;
  let step = 0;
  while (Math.abs(value) >= (step === 0 ? 9999.5 : 999.5) && step + 1 < steps.length) {
    value /= 1000;
    ++step;
  }
  const digits = Math.abs(value) >= 100 || (step === 0 && Number.isInteger(value)) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return (digits === 0 ? whole.format(value) : value.toFixed(digits)) + steps[step];
}

export function duration(ns: number): string {
  if (!Number.isFinite(ns)) return '—';
  const [divisor, unit] = ns < 1e3 ? [1, 'ns'] : ns < 1e6 ? [1e3, 'us'] : ns < 1e9 ? [1e6, 'ms'] : [1e9, 's'];
  return `${(ns / divisor).toPrecision(ns < 1e3 ? 3 : 4)} ${unit}`;
}

/** "+12.3 %", "±0", "new" where there was 0 before. */
export function change(percent: number | null): string {
  if (percent === null || Number.isNaN(percent)) return '';
  if (percent === 0) return '0 %';
  if (!Number.isFinite(percent)) return percent > 0 ? '+∞' : '−∞';
  const size = Math.abs(percent);
  const text = size >= 1000 ? whole.format(size) : size >= 0.05 ? size.toFixed(1) : '<0.1';
  return `${percent > 0 ? '+' : '−'}${text} %`;
}
