// Operators under the roofs of their device: marks, roofs and names in the drawing. TFLOP/s, TB/s, FLOP/byte.

import { kHeight, kInner, kWidth, Scale, type Decades } from '../roofline/place';

export interface RoofPoint {
  name: string;
  shapes: string;
  phase: string;
  /** Of the elements: "bf16". */
  type: string;
  /** Done by matrix units, else by vector units. */
  matrix: boolean;
  calls: number;
  ns: number;
  flops: number;
  bytes: number;
  /** FLOP/s and bytes/s of the roofs. */
  peak?: number;
  bandwidth?: number;
  percent?: number;
  bound?: 'compute' | 'memory';
  lost?: number;
  /** Why it is not held against the roof. */
  not_judged?: string;
  /** Its longest kernel: track, start, duration. */
  longest?: [number, number, number];
}
export interface OperatorRoofs {
  gpu: number;
  notes: string[];
  count: number;
  points: RoofPoint[];
}

/** What tells points apart, short enough for the address. */
export function pointKey(point: RoofPoint): string {
  const whole = `${point.name} ${point.phase} ${point.type} ${point.shapes}`;
  if (whole.length <= 300) return whole;
  let hash = 2166136261;
  for (let i = 0; i < whole.length; ++i) hash = Math.imul(hash ^ whole.charCodeAt(i), 16777619);
  return `${whole.slice(0, 280)} ${(hash >>> 0).toString(16)}`;
}
export const intensityOf = (point: RoofPoint): number => (point.bytes > 0 ? point.flops / point.bytes : 0);
export const teraflops = (point: RoofPoint): number => point.flops / point.ns / 1e3;
export const terabytes = (point: RoofPoint): number => point.bytes / point.ns / 1e3;

export interface OperatorMark {
  point: RoofPoint;
  key: string;
  /** 0 = no FLOPs: it stands on the left axis, by its bytes alone. */
  x: number;
  y: number;
  radius: number;
}
/** Points with a smaller part of the GPU time are in the table alone. */
export const kLeastShare = 0.001;
/** A mark for each point with a rate, the small ones last and so on top. */
export function operatorMarks(roofs: OperatorRoofs): OperatorMark[] {
  const all = Math.max(1, roofs.gpu);
  return roofs.points
    .filter((point) => point.ns >= kLeastShare * all)
    .map((point): OperatorMark => {
      const x = point.flops > 0 ? intensityOf(point) : 0;
      return {
        point,
        key: pointKey(point),
        x,
        y: x > 0 ? teraflops(point) : terabytes(point),
        radius: 3.5 + 22 * Math.sqrt(Math.min(1, point.ns / all)),
      };
    })
    .filter((mark) => mark.y > 0 && Number.isFinite(mark.y) && Number.isFinite(mark.x))
    .sort((a, b) => b.radius - a.radius);
}

export interface OperatorRoof {
  name: string;
  /** TFLOP/s or TB/s. */
  peak: number;
  memory: boolean;
}
/** The roofs that points were held against, the highest first. */
export function operatorRoofs(points: RoofPoint[]): OperatorRoof[] {
  const found = new Map<string, OperatorRoof>();
  for (const point of points) {
    if (point.bandwidth !== undefined)
      found.set(`memory ${point.bandwidth}`, { name: 'memory', peak: point.bandwidth / 1e12, memory: true });
    if (point.peak !== undefined && point.flops > 0) {
      // Integers and booleans are counted at the rate of 32-bit numbers.
      const units = `${point.type === 'other' ? 'f32' : point.type}${point.matrix ? ' matrix' : ''}`;
      const key = `${point.peak}`;
      const known = found.get(key);
      if (known === undefined) found.set(key, { name: units, peak: point.peak / 1e12, memory: false });
      else if (!known.name.split(', ').includes(units)) known.name += `, ${units}`;
    }
  }
  return [...found.values()].sort((a, b) => Number(a.memory) - Number(b.memory) || b.peak - a.peak);
}

export function operatorDecades(marks: OperatorMark[], roofs: OperatorRoof[]): Decades {
  const xs = marks.filter((mark) => mark.x > 0).map((mark) => mark.x);
  const bandwidth = Math.max(0, ...roofs.filter((each) => each.memory).map((each) => each.peak));
  const peaks = roofs.filter((each) => !each.memory).map((each) => each.peak);
  // The corners of the roofs belong to the picture.
  if (bandwidth > 0) for (const peak of peaks) xs.push(peak / bandwidth);
  const [least, most] = xs.length === 0 ? [0.1, 10] : [Math.min(...xs), Math.max(...xs)];
  const left = Math.floor(Math.log10(least) - 0.15);
  const right = Math.max(left + 1, Math.ceil(Math.log10(most) + 0.15));
  const ys = [...marks.map((mark) => (mark.x > 0 ? mark.y : mark.y * 10 ** left)), ...peaks].filter((y) => y > 0);
  const bottom = ys.length === 0 ? -2 : Math.floor(Math.log10(Math.min(...ys)));
  const top = ys.length === 0 ? 2 : Math.ceil(Math.log10(Math.max(...ys)) + 0.05);
  return { left, right, bottom, top: Math.max(bottom + 1, top) };
}

/** Where the names of compute roofs end: above their right ends, or further to the left where no mark lies under them. */
export function roofNames(
  roofs: OperatorRoof[],
  marks: OperatorMark[],
  scale: Scale,
): { roof: OperatorRoof; x: number; y: number; wide: number }[] {
  return roofs
    .filter((roof) => !roof.memory)
    .map((roof) => {
      const y = scale.py(roof.peak) - 5;
      const wide = (roof.name.length + 14) * 6.4;
      const covered = (x: number): boolean =>
        marks.some((mark) => {
          const [mx, my] = [scale.px(mark.x), scale.py(mark.y)];
          return (
            mark.x > 0 && mx > x - wide - mark.radius && mx < x + mark.radius && Math.abs(my - y + 4) < mark.radius + 8
          );
        });
      const right = kWidth - kInner.right - 6;
      const places = Array.from({ length: 7 }, (_, i) => right - 40 * i).filter((x) => x - wide > kInner.left);
      return { roof, x: places.find((x) => !covered(x)) ?? right, y, wide };
    });
}

export interface PlacedName {
  key: string;
  text: string;
  x: number;
  y: number;
  anchor: 'start' | 'end';
}
/** Names beside the largest marks; one that fits nowhere is left to the pointer. */
export function operatorNames(marks: OperatorMark[], roofs: OperatorRoof[], scale: Scale, most: number): PlacedName[] {
  const at = (mark: OperatorMark): [number, number] => [
    mark.x > 0 ? scale.px(mark.x) : kInner.left,
    scale.py(mark.x > 0 ? mark.y : mark.y * 10 ** scale.decades.left),
  ];
  const taken = marks.slice(0, 60).map((mark) => {
    const [x, y] = at(mark);
    const r = Math.min(mark.radius, 9) * 0.8;
    return [x - r, y - r, 2 * r, 2 * r];
  });
  for (const { x, y, wide } of roofNames(roofs, marks, scale)) taken.push([x - wide, y - 13, wide, 16]);
  const free = (x: number, y: number, w: number): boolean =>
    x > kInner.left &&
    x + w < kWidth - kInner.right &&
    y > kInner.top &&
    y + 14 < kHeight - kInner.bottom &&
    !taken.some(([a, b, c, d]) => x < a + c && a < x + w && y < b + d && b < y + 14);
  const out: PlacedName[] = [];
  const named = new Set<string>();
  for (const mark of marks) {
    if (out.length >= most) break;
    const text = mark.point.name.replace(/^(aten|torch\.nn\.functional)(::|\.)/, '').slice(0, 30);
    // Equal names at several shapes: the largest has it.
    if (named.has(`${text} ${mark.point.phase}`)) continue;
    const [x, y] = at(mark);
    const w = text.length * 7.2 + 8;
    const r = mark.radius + 3;
    const places: [number, number, 'start' | 'end'][] = [
      [x + r, y - 7, 'start'],
      [x - r - w, y - 7, 'end'],
      [x + r * 0.6, y - r - 13, 'start'],
      [x + r * 0.6, y + r, 'start'],
      [x - r * 0.6 - w, y - r - 13, 'end'],
      [x - r * 0.6 - w, y + r, 'end'],
    ];
    const place = places.find(([a, b]) => free(a, b, w));
    if (place === undefined) continue;
    named.add(`${text} ${mark.point.phase}`);
    taken.push([place[0], place[1], w, 14]);
    out.push({
      key: mark.key,
      text,
      x: place[2] === 'start' ? place[0] : place[0] + w,
      y: place[1] + 11,
      anchor: place[2],
    });
  }
  return out;
}
