// Where everything of a roofline stands: the marks of kernels, the lines of roofs, the decades of the axes, and pixels.
import type { Roof } from '../document';
import { kLevels, type Bound, type Level, type Point, type View } from '../model';

export const kWidth = 1000;
export const kHeight = 470;
export const kInner = { left: 66, right: 18, top: 16, bottom: 46 };

/** Of one run: by data type, then by the name of the roof. */
export type RoofsOfTypes = Record<string, Record<string, Roof>>;
export type Axes = 'fit' | 'points' | 'whole';

export interface Mark {
  run: number;
  level: Level;
  /** 0 for a kernel without FLOPs, whose y is GB/s. */
  x: number;
  y: number;
  point: Point;
}

/** A mark for each point and level, the small ones last and so on top. `points`: by run. */
export function marksOf(points: Point[][], levels: Record<Level, boolean>): Mark[] {
  const result: Mark[] = [];
  points.forEach((ofRun, run) => {
    for (const point of ofRun)
      for (const level of kLevels) {
        if (!levels[level]) continue;
        const none = point.performance === 0;
        const x = none ? 0 : point.intensity[level];
        const y = none ? point.bandwidth[level] : point.performance;
        if ((none || (x > 0 && Number.isFinite(x))) && y > 0 && Number.isFinite(y))
          result.push({ run, level, x, y, point });
      }
  });
  return result.sort((a, b) => b.point.share - a.point.share);
}

export interface Line {
  run: number;
  name: string;
  /** The data type of a compute roof; empty for memory. */
  of: string;
  roof: Roof;
  compute: boolean;
}

const isCompute = (name: string) => name === 'valu' || name === 'mfma';

/** The roofs of the types `typesOf` names, by run. The memory roofs are the same for all types and end at the highest peak. */
export function linesOf(
  roofs: RoofsOfTypes[],
  typesOf: (run: number) => string[],
  levels: Record<Level, boolean>,
): Line[] {
  const result: Line[] = [];
  roofs.forEach((each, run) => {
    for (const of of typesOf(run))
      for (const [name, roof] of Object.entries(each[of] ?? {})) {
        const compute = isCompute(name);
        if (!compute && !levels[name as Level]) continue;
        const same = compute ? undefined : result.find((line) => line.run === run && line.name === name);
        if (same === undefined) result.push({ run, name, of: compute ? of : '', roof, compute });
        else if (roof[0][1] > same.roof[0][1]) same.roof = roof;
      }
  });
  return result;
}

/** A kernel with the roof that binds it. */
export interface Bounded {
  run: number;
  /** As in table 0.1. */
  number: number;
  point: Point;
  /** The data type under whose roofs it is judged. */
  of: string;
  bound: Bound | null;
  /** Where its name stands: the level that binds it, or the nearest to memory that is shown. */
  mark: Mark | undefined;
}

/** The kernels of all runs, each run's longest first. */
export function boundedOf(
  views: View[],
  marks: Mark[],
  boundIn: (run: number, point: Point) => { of: string; bound: Bound | null },
): Bounded[] {
  return views.flatMap((view, run) =>
    view.kernelPoints.map((point): Bounded => {
      const { of, bound } = boundIn(run, point);
      const own = marks.filter((mark) => mark.run === run && mark.point.kernel === point.kernel);
      const at = kLevels.map((level) => own.find((mark) => mark.level === level)).find((mark) => mark !== undefined);
      return {
        run,
        number: view.kernels.findIndex((each) => each.name === point.kernel),
        point,
        of,
        bound,
        mark: own.find((mark) => mark.level === bound?.roof) ?? at,
      };
    }),
  );
}

/** Powers of ten at the ends of the axes. */
export interface Decades {
  left: number;
  right: number;
  bottom: number;
  top: number;
}

/** Of the points and the corners of the roofs, of the points alone, or what rocprof-compute shows. */
export function decadesOf(marks: Mark[], lines: Line[], axes: Axes): Decades {
  const placed = marks.filter((mark) => mark.x > 0);
  let xs = placed.map((mark) => mark.x);
  const ys = placed.map((mark) => mark.y);
  if (axes !== 'points' || placed.length === 0)
    for (const { roof, compute } of lines) {
      const [[x0, x1], [, y1]] = roof;
      if (compute) {
        xs.push(x0 * 8);
        ys.push(y1);
      } else {
        xs.push(x1 * 2, x1 / 200);
        ys.push(y1 / 200);
      }
    }
  if (axes === 'whole') {
    xs = [0.01, 1000];
    for (const line of lines) if (!line.compute) ys.push(0.01 * line.roof[2]);
  }
  const usable = (values: number[]) => values.filter((v) => v > 0 && Number.isFinite(v));
  const extent = (values: number[], low: number, high: number): [number, number] => {
    const good = usable(values);
    if (good.length === 0) return [Math.log10(low), Math.log10(high)];
    const from = Math.floor(Math.log10(Math.min(...good)));
    return [from, Math.max(Math.ceil(Math.log10(Math.max(...good))), from + 1)];
  };
  const [left, right] = extent(xs, 0.01, 1);
  for (const mark of marks) if (mark.x === 0) ys.push(mark.y * 10 ** left);
  const [bottom, top] = extent(ys, 1, 1000);
  const high = Math.log10(Math.max(...usable(ys), 10 ** bottom));
  return { left, right, bottom, top: top + (top - high < 0.08 ? 1 : 0) };
}

/** From FLOP/byte and GFLOP/s to pixels of the drawing. */
export class Scale {
  constructor(readonly decades: Decades) {}

  px(x: number): number {
    const { left, right } = this.decades;
    return kInner.left + ((Math.log10(x) - left) / (right - left)) * (kWidth - kInner.left - kInner.right);
  }
  py(y: number): number {
    const { bottom, top } = this.decades;
    const share = (Math.log10(y) - bottom) / (top - bottom);
    return kHeight - kInner.bottom - share * (kHeight - kInner.top - kInner.bottom);
  }
  /** Marks without FLOPs stand on the left axis. */
  xOf(mark: Mark): number {
    return mark.x > 0 ? this.px(mark.x) : kInner.left;
  }
  yOf(mark: Mark): number {
    return this.py(mark.x > 0 ? mark.y : mark.y * 10 ** this.decades.left);
  }
  /** Ends of a roof in the drawing. */
  segment({ roof, compute }: { roof: Roof; compute: boolean }): { x1: number; y1: number; x2: number; y2: number } {
    const [, [, y1], peak] = roof;
    const { left, bottom } = this.decades;
    if (compute)
      return {
        x1: this.px(Math.max(roof[0][0], 10 ** left)),
        y1: this.py(y1),
        x2: kWidth - kInner.right,
        y2: this.py(y1),
      };
    const from = Math.max(10 ** left, 10 ** bottom / peak);
    return { x1: this.px(from), y1: this.py(from * peak), x2: this.px(y1 / peak), y2: this.py(y1) };
  }
  /** Of memory roofs, in degrees as SVG turns. */
  get slope(): number {
    const { left, right, bottom, top } = this.decades;
    const up = (kHeight - kInner.top - kInner.bottom) / (top - bottom);
    return (Math.atan2(up, (kWidth - kInner.left - kInner.right) / (right - left)) * -180) / Math.PI;
  }
}

export const powers = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i));
export const between = (from: number, to: number): number[] =>
  powers(from, to - 1).flatMap((d) => [2, 3, 4, 5, 6, 7, 8, 9].map((k) => k * d));
/** Of the mark of a kernel with this share of the time, in percent. */
export const radius = (share: number): number => 3.5 + 6 * Math.sqrt(Math.min(100, Math.max(0, share || 0)) / 100);
