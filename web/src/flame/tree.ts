// Trees of call stacks for drawing: one run, or two to compare, whose equal frames are one node. The numbers are those of tacho;
// here they are only added up along the tree.

/** As tacho writes it (format/stacks): columns of frames, and of nodes with parents before their children. */
export interface FlameRun {
  name: string;
  command: string;
  samples: number;
  /** Some samples are of wall time, not of CPU time. */
  wall: boolean;
  /** The host's time is of functions that a profiler recorded, not of samples. */
  recorded?: boolean;
  hostNs: number;
  gpuNs: number;
  gpuExactNs: number;
  gpuNearNs: number;
  frames: {
    name: string[];
    part: string[];
    file: string[];
    line: number[];
    interpreter: boolean[];
    kernel?: number[];
    collective?: boolean[];
  };
  nodes: { parent: number[]; frame: number[]; host: number[]; gpu: number[]; samples: number[]; launches: number[] };
}

export interface Frame {
  name: string;
  part: string;
  /** What its colour says (kParts): its part, and of a device's work which. */
  look: string;
  file: string;
  line: number;
  /** Of the kernel in the first run; 0 = none. */
  kernel: number;
  hidden: boolean;
  key: string;
  hash: [number, number];
}

/** Values are by run: of the one shown, and of the one it is compared with. */
export interface FlameNode {
  frame: Frame;
  parent: FlameNode | null;
  depth: number;
  children: Map<string, FlameNode>;
  host: [number, number];
  gpu: [number, number];
  samples: [number, number];
  launches: [number, number];
  /** Names the node in addresses: a hash of the frames from the root on. */
  hash: [number, number];
}

export type Metric = 'host' | 'gpu' | 'both';
export type Order = 'top-down' | 'bottom-up';
/** What is told apart: lines of a function, functions, or only ranges, operators and kernels. */
export type Detail = 'lines' | 'functions' | 'operators';
export interface Settings {
  metric: Metric;
  order: Order;
  detail: Detail;
  /** Whether the Python interpreter's own frames between the program's stand in the graph. */
  interpreter: boolean;
}

/** What the width is at first: sampled time, else that of devices, else of the functions that a profiler recorded. */
export function firstMetric(runs: FlameRun[]): Metric {
  if (runs.some((run) => run.hostNs > 0 && run.recorded !== true)) return 'host';
  return runs.some((run) => run.gpuNs > 0) ? 'gpu' : 'host';
}
/** What the host's time of a run is, in words. */
export const hostTime = (run: FlameRun): string =>
  run.recorded === true ? 'in recorded functions' : run.wall ? 'wall time' : 'CPU time';

// [text, hue, saturation] by part. Hues as the other views have them for these kinds (view/colour.ts): native code is the
// program's own as Python is, in another blue.
export const kParts: Record<string, [string, number, number]> = {
  python: ['Python', 215, 62],
  native: ['native', 226, 24],
  marker: ['range, operator', 48, 55],
  api: ['API call', 186, 46],
  device: ['kernel', 146, 34],
  collective: ['collective', 262, 42],
  copy: ['copy, fill', 32, 72],
  process: ['process', 220, 10],
  thread: ['thread', 220, 10],
  truncated: ['cut off', 0, 0],
  unknown: ['no call stack', 0, 0],
  folded: ['smaller frames', 0, 0],
  root: ['all', 220, 8],
};

/** Of frames of devices: copies and fills have no kernel. */
function lookOf(part: string, collective: boolean | undefined, kernel: number | undefined): string {
  return part !== 'device' ? part : collective === true ? 'collective' : kernel === 0 ? 'copy' : 'device';
}

/** Modules of one class are one frame where lines are not told apart: "nn.Module: Block_0" to "_23" are "nn.Module: Block". */
const classOf = (name: string): string => name.replace(/^(nn\.Module: .+)_\d+$/, '$1');

export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
// A cache of kernels has one kernel under many paths: native frames are told apart by their file's name alone.
const placeOf = (frame: { part: string; file: string }): string =>
  frame.part === 'python' ? frame.file : baseName(frame.file);
export const label = (frame: Frame): string =>
  frame.part === 'python' && frame.file !== ''
    ? `${frame.name} (${baseName(frame.file)}${frame.line > 0 ? `:${frame.line}` : ''})`
    : frame.name;

function hashOf(text: string): [number, number] {
  let [a, b] = [2166136261, 0x9e3779b9];
  for (let i = 0; i < text.length; ++i) {
    const c = text.charCodeAt(i);
    a = Math.imul(a ^ c, 16777619);
    b = Math.imul(b ^ c, 0x85ebca6b) + 0x1b873593;
  }
  return [a >>> 0, b >>> 0];
}
const below = ([a, b]: [number, number], [c, d]: [number, number]): [number, number] => [
  Math.imul(a ^ c, 16777619) >>> 0,
  (Math.imul(b ^ d, 0xc2b2ae35) + 0x27d4eb2f) >>> 0,
];
export const pathOf = (node: FlameNode): string =>
  node.parent === null ? '' : node.hash.map((each) => each.toString(36)).join('.');
/** For colours: of a function, wherever it lies. */
export const shade = (frame: Frame): number => hashOf(frame.name + baseName(frame.file))[0];

function make(frame: Frame, parent: FlameNode | null): FlameNode {
  return {
    frame,
    parent,
    depth: parent === null ? 0 : parent.depth + 1,
    children: new Map(),
    host: [0, 0],
    gpu: [0, 0],
    samples: [0, 0],
    launches: [0, 0],
    hash: parent === null ? [1, 1] : below(parent.hash, frame.hash),
  };
}
function child(parent: FlameNode, frame: Frame): FlameNode {
  let node = parent.children.get(frame.key);
  if (node === undefined) parent.children.set(frame.key, (node = make(frame, parent)));
  return node;
}

const kHost = new Set(['python', 'native', 'truncated', 'api', 'thread']);

/** The tree of all runs. Frames that are left out give their place to what they called. */
export function load(runs: FlameRun[], detail: Detail, interpreter: boolean): FlameNode {
  const root = make(
    { name: 'all', part: 'root', look: 'root', file: '', line: 0, kernel: 0, hidden: false, key: 'all', hash: [0, 0] },
    null,
  );
  runs.forEach((run, r) => {
    const [f, n] = [run.frames, run.nodes];
    const frames = f.name.map((full, i): Frame => {
      const name = detail === 'lines' ? full : classOf(full);
      const frame = { name, part: f.part[i], file: f.file[i], line: detail === 'lines' ? f.line[i] : 0 };
      const key = [frame.part, name, placeOf(frame), frame.line].join('\u0000');
      return {
        ...frame,
        look: lookOf(frame.part, f.collective?.[i], f.kernel?.[i]),
        kernel: r === 0 ? (f.kernel?.[i] ?? 0) : 0,
        hidden: detail === 'operators' ? kHost.has(frame.part) : !interpreter && f.interpreter[i],
        key,
        hash: hashOf(key),
      };
    });
    // By node of the run: where its children go, and, of hidden frames, where its own time goes. Time that was spent in the
    // interpreter itself keeps its frames; they are made when there is some.
    const place: FlameNode[] = [root];
    const own: (FlameNode | null)[] = [root];
    const ownPlace = (i: number): FlameNode => {
      const known = own[i];
      if (known !== null) return known;
      const parent = n.parent[i];
      return (own[i] = child(frames[n.frame[parent]].hidden ? ownPlace(parent) : place[parent], frames[n.frame[i]]));
    };
    for (let i = 1; i < n.parent.length; ++i) {
      const frame = frames[n.frame[i]];
      const parent = place[n.parent[i]];
      place.push(frame.hidden ? parent : child(parent, frame));
      own.push(frame.hidden && detail !== 'operators' ? null : place[i]);
      if (n.host[i] === 0 && n.gpu[i] === 0 && n.samples[i] === 0 && n.launches[i] === 0) continue;
      const leaf = ownPlace(i);
      for (let up: FlameNode | null = leaf; up !== null; up = up.parent) {
        up.host[r] += n.host[i];
        up.gpu[r] += n.gpu[i];
        up.samples[r] += n.samples[i];
        up.launches[r] += n.launches[i];
      }
    }
  });
  return root;
}

/** What a node has of its own, beside its children. */
export function self(node: FlameNode): {
  host: [number, number];
  gpu: [number, number];
  samples: [number, number];
  launches: [number, number];
} {
  const own = {
    host: [...node.host],
    gpu: [...node.gpu],
    samples: [...node.samples],
    launches: [...node.launches],
  } as ReturnType<typeof self>;
  for (const each of node.children.values())
    for (const what of ['host', 'gpu', 'samples', 'launches'] as const)
      for (const r of [0, 1]) own[what][r] -= each[what][r];
  return own;
}

/** Callees first: paths from the innermost frame outwards, by the frame's own time. */
export function invert(root: FlameNode): FlameNode {
  const top = make(root.frame, null);
  const add = (to: FlameNode, own: ReturnType<typeof self>): void => {
    for (const what of ['host', 'gpu', 'samples', 'launches'] as const)
      for (const r of [0, 1]) to[what][r] += own[what][r];
  };
  const queue = [root];
  for (let i = 0; i < queue.length; ++i) {
    const node = queue[i];
    for (const each of node.children.values()) queue.push(each);
    if (node.parent === null) continue;
    const own = self(node);
    if (![0, 1].some((r) => own.host[r] > 0 || own.gpu[r] > 0)) continue;
    let at = top;
    add(at, own);
    for (let from: FlameNode | null = node; from !== null && from.parent !== null; from = from.parent) {
      at = child(at, from.frame);
      add(at, own);
    }
  }
  return top;
}

/** The node that an address names; null when the tree has none. */
export function findPath(root: FlameNode, path: string): FlameNode | null {
  if (path === '') return null;
  const queue = [root];
  for (let i = 0; i < queue.length; ++i) {
    if (i > 0 && pathOf(queue[i]) === path) return queue[i];
    for (const each of queue[i].children.values()) queue.push(each);
  }
  return null;
}

/** Narrower frames, in pixels, are drawn together. */
const kLeast = 0.5;

/** A box to draw, in pixels; without a node it stands for frames that are too narrow. */
export interface Box {
  node: FlameNode | null;
  x: number;
  w: number;
  depth: number;
  /** Above the frame that is zoomed into. */
  outer: boolean;
  /** Of a box without a node: how many frames, and their values. */
  count: number;
  value: number;
}

/** What is as wide as what: the time of one kind; of two runs the larger, so that what went away is still seen. */
export class Widths {
  private readonly known = new Map<FlameNode, number>();
  constructor(
    readonly metric: Metric,
    readonly diff: boolean,
  ) {}
  value(node: FlameNode, r: number): number {
    return this.metric === 'both' ? node.host[r] + node.gpu[r] : node[this.metric][r];
  }
  of(node: FlameNode): number {
    if (!this.diff) return this.value(node, 0);
    const known = this.known.get(node);
    if (known !== undefined) return known;
    // Parents are at least as wide as their children together: those first.
    const list = [node];
    for (let i = 0; i < list.length; ++i)
      for (const each of list[i].children.values()) if (!this.known.has(each)) list.push(each);
    for (let i = list.length; i-- > 0;) {
      let sum = 0;
      for (const each of list[i].children.values()) sum += this.known.get(each) ?? 0;
      this.known.set(list[i], Math.max(sum, this.value(list[i], 0), this.value(list[i], 1)));
    }
    return this.known.get(node) ?? 0;
  }
}

/** Boxes of what is below `focus`, widest first, and of the frames above it, in `room` pixels. */
export function layout(root: FlameNode, focus: FlameNode | null, widths: Widths, room: number): Box[] {
  const boxes: Box[] = [];
  const top = focus ?? root;
  const path: FlameNode[] = [];
  for (let up: FlameNode | null = top; up !== null; up = up.parent) path.unshift(up);
  path.forEach((node, depth) =>
    boxes.push({ node, x: 0, w: room, depth, outer: node !== top, count: 1, value: widths.of(node) }),
  );
  const whole = widths.of(top);
  if (whole <= 0) return boxes;
  const scale = room / whole;
  const list: { node: FlameNode; x: number; depth: number }[] = [{ node: top, x: 0, depth: path.length }];
  for (let i = 0; i < list.length; ++i) {
    const { node, depth } = list[i];
    let { x } = list[i];
    const children = [...node.children.values()]
      .map((each) => ({ each, width: widths.of(each) }))
      .filter(({ width }) => width > 0);
    children.sort((a, b) => b.width - a.width || (a.each.frame.key < b.each.frame.key ? -1 : 1));
    let count = 0;
    let rest = 0;
    for (const { each, width } of children) {
      const w = width * scale;
      if (w < kLeast) {
        ++count;
        rest += width;
        continue;
      }
      boxes.push({ node: each, x, w, depth, outer: false, count: 1, value: width });
      list.push({ node: each, x, depth: depth + 1 });
      x += w;
    }
    if (rest * scale >= kLeast) boxes.push({ node: null, x, w: rest * scale, depth, outer: false, count, value: rest });
  }
  return boxes;
}
