// Cells of lines, in each table that has them: "—" is what is not known.

import { short, time } from '../view/units';
import type { Line } from './moment';

/** So many a second. */
export const rate = (each: number): string => (Number.isFinite(each) ? short(each) : '—');
const ofTime = (line: Line, part: number): string =>
  line.time === null ? '—' : (line.bound ? '≤ ' : '') + time(line.time / part);
export const whole = (line: Line): string => ofTime(line, 1);
export const average = (line: Line): string => ofTime(line, line.row.count);
/** Half the 95 % interval around the time, %. */
export const error = (line: Line): string => (line.error === null ? '—' : (line.error * 100).toFixed(1));
