// Names in the drawing of a roofline: of roofs along their lines, of kernels beside their marks.
import { short } from '../format';
import { kHeight, kInner, kWidth, radius, type Bounded, type Line, type Mark, type Scale } from './place';

export interface RoofLabel {
  line: Line;
  /** Along the slope of memory roofs. */
  turned: boolean;
  x: number;
  y: number;
  seen: boolean;
  text: string;
}

/** Where the name of each roof stands; names that would lie over each other step to the left. */
export function roofLabels(
  lines: Line[],
  scale: Scale,
  several: boolean,
  nameOf: (run: number, roof: string) => string,
): RoofLabel[] {
  const taken: { x: number; y: number }[] = [];
  return lines.map((line) => {
    const s = scale.segment(line);
    const who = several ? ` [${line.run + 1}]` : '';
    const name = nameOf(line.run, line.name);
    if (!line.compute) {
      const share = line.run === 0 ? 0.3 : 0.55;
      return {
        line,
        turned: true,
        x: s.x1 + (s.x2 - s.x1) * share,
        y: s.y1 + (s.y2 - s.y1) * share - 5,
        seen: s.x1 < s.x2,
        text: `${name} ${short(line.roof[2])} GB/s${who}`,
      };
    }
    const y = s.y1 - 5;
    let x = kWidth - kInner.right - 6;
    while (taken.some((other) => Math.abs(other.y - y) < 13 && Math.abs(other.x - x) < 175)) x -= 180;
    const seen = x > kInner.left + 180 && y > kInner.top && y < kHeight - kInner.bottom;
    if (seen) taken.push({ x, y });
    return { line, turned: false, x, y, seen, text: `${name} ${line.of} ${short(line.roof[2])} GFLOP/s${who}` };
  });
}

export interface PointLabel {
  each: Bounded;
  x: number;
  y: number;
  anchor: 'start' | 'end';
  text: string;
}

const shortName = (name: string): string => {
  const plain = name.replace(/^void /, '').replace(/[<(].*$/, '');
  const last = plain.split('::').at(-1) ?? '';
  const text = last === '' ? name : last;
  return text.length <= 22 ? text : `${text.slice(0, 13)}…${text.slice(-8)}`;
};

/** Names of kernels beside their marks; one that fits nowhere stays in the table alone. */
export function pointLabels(bounded: Bounded[], marks: Mark[], roofs: RoofLabel[], scale: Scale): PointLabel[] {
  const taken: [number, number, number, number][] = marks.map((mark) => [
    scale.xOf(mark) - 5,
    scale.yOf(mark) - 5,
    10,
    10,
  ]);
  // The names of sloping roofs, as squares along them.
  const turn = (scale.slope * Math.PI) / 180;
  for (const label of roofs)
    if (label.turned && label.seen)
      for (let along = 0; along < label.text.length * 6.4; along += 9)
        taken.push([label.x + along * Math.cos(turn), label.y + along * Math.sin(turn) - 10, 9, 12]);
  const free = (x: number, y: number, w: number, h: number) =>
    x > kInner.left &&
    x + w < kWidth - kInner.right &&
    y > kInner.top &&
    y + h < kHeight - kInner.bottom &&
    !taken.some(([a, b, c, d]) => x < a + c && a < x + w && y < b + d && b < y + h);
  const result: PointLabel[] = [];
  for (const each of bounded) {
    if (each.mark === undefined) continue;
    const [x, y, r] = [scale.xOf(each.mark), scale.yOf(each.mark), radius(each.point.share) + 4];
    const text = `${each.number} ${shortName(each.point.kernel)}`;
    const w = text.length * 6.3;
    const places: [number, number, 'start' | 'end'][] = [
      [x + r, y - 7, 'start'],
      [x - r - w, y - 7, 'end'],
      [x + r - 4, y - r - 14, 'start'],
      [x + r - 4, y + r, 'start'],
      [x - r - w + 4, y + r, 'end'],
      [x - r - w + 4, y - r - 14, 'end'],
    ];
    const place = places.find(([a, b]) => free(a, b, w, 14));
    if (place === undefined) continue;
    taken.push([place[0], place[1], w, 14]);
    result.push({ each, x: place[2] === 'start' ? place[0] : place[0] + w, y: place[1] + 11, anchor: place[2], text });
  }
  return result;
}
