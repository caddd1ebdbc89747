// What /api/memory tells: who held memory, and how many bytes were live over time by owner. Times are ns since t0.

import { css, oklch, pixel } from './colour';

export type Cell = string | number | null;
export interface MemoryTable {
  columns: { name: string; title: string; unit: string }[];
  rows: Cell[][];
  /** Of all rows; the answer has the first. */
  count: number;
}
export interface MemoryArea {
  name: string;
  /** What tells its owner apart, as the rows of the tables have it; empty for what has no owner. */
  names: Cell[];
  /** Live bytes by bucket. */
  live: number[];
}
export type MemoryBy = 'owner' | 'category' | 'line' | 'module' | 'operator';
export interface MemoryWay {
  by: MemoryBy;
  holders: MemoryTable;
  unfreed: MemoryTable;
  areas: MemoryArea[];
}
export interface MemoryPlace {
  name: string;
  peak: number;
  peak_at: number;
  sentences: string[];
  findings: string[];
  doubts: string[];
  /** By bucket: the most that was live, and what was reserved then; null = not told. */
  curve: [number, number | null][];
  lifetimes: MemoryTable;
  by: MemoryWay[];
}
export interface MemoryOfRun {
  from: number;
  to: number;
  places: MemoryPlace[];
}

export const kWays: { id: MemoryBy; title: string }[] = [
  { id: 'owner', title: 'Owners' },
  { id: 'category', title: 'Categories' },
  { id: 'line', title: 'Lines' },
  { id: 'module', title: 'Modules' },
  { id: 'operator', title: 'Operators' },
];

/** Neighbours in the stack are far apart on the wheel. */
const kHues = [254, 60, 156, 330, 100, 205, 24, 290, 130, 0];
/** Of an area: owners have hues by their number, what has no owner is grey. */
export function areaColour(areas: MemoryArea[], index: number, dark: boolean): string {
  const area = areas[index];
  if (area.names.length === 0) {
    const before = index === areas.length - 1 && area.name.startsWith('(before');
    return css(pixel(...oklch(dark ? (before ? 0.36 : 0.48) : before ? 0.88 : 0.78, 0.005, 254)));
  }
  return css(pixel(...oklch(dark ? 0.64 : 0.74, 0.1, kHues[index % kHues.length])));
}

/** A row of an owner, without the columns of numbers: equal for equal owners. */
export const ownerKey = (names: Cell[]): string => JSON.stringify(names.map((each) => each ?? null));
/** How many columns of numbers stand before the names. */
export const kNumbers = 3;
