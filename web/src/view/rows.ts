// The tree of tracks as rows of the timeline: which are shown, how high, where.

import type { Run, Track } from './source';

export interface Row {
  track: Track;
  depth: number;
  top: number;
  height: number;
  what: 'group' | 'slices' | 'counter';
  /** Height of a lane, and where the first begins below `top`. */
  lane: number;
  first: number;
  lanes: number;
  children: boolean;
  open: boolean;
  /** It stays at the top, however far the rows are scrolled. */
  pinned: boolean;
}

/** Where a row stands while the rows are scrolled. */
export const topOf = (row: Row, scroll: number): number => (row.pinned ? row.top : row.top - scroll);

export const kLane = 18;
const kGroup = 24;
const kCounter = 40;
const kStackLane = 14;
const kFirstRows = 100;
/** Queues that were busy for less of the run are folded, where there are several. */
const kIdle = 0.001;
const kLeastFolded = 3;

/** Rows that the tree makes itself: the folded children of a track, and processes that only helped others to start. */
const kIdleFold = -1000;
const kHelpers = -2;
const isFold = (track: Track): boolean => track.id <= kHelpers;

/** What of the tree is looked at. */
export interface RowChoice {
  readonly hidden: ReadonlySet<number>;
  /** Only tracks whose name matches, with the groups they lie in; null = all. */
  readonly matches: ((name: string) => boolean) | null;
  /** They come first and stay there. */
  readonly pinned: readonly number[];
  /** They come in this order before the others of their group. */
  readonly order?: readonly number[];
}
const kAll: RowChoice = { hidden: new Set(), matches: null, pinned: [], order: [] };

export class TrackTree {
  readonly byId = new Map<number, Track>();
  readonly children = new Map<number, Track[]>();
  /** The fold that a track lies in. */
  private readonly folder = new Map<number, number>();

  constructor(run: Run) {
    for (const track of run.tracks) this.byId.set(track.id, track);
    // Tracks on which nothing happened are no rows, nor are groups of such tracks.
    const alive = new Set<number>();
    for (const track of run.tracks)
      if (track.events > 0 || run.live === true)
        for (let at: Track | undefined = track; at !== undefined && !alive.has(at.id); at = this.byId.get(at.parent))
          alive.add(at.id);
    for (const track of run.tracks) {
      if (!alive.has(track.id)) continue;
      const parent = this.byId.has(track.parent) && track.parent !== track.id ? track.parent : -1;
      const list = this.children.get(parent);
      if (list === undefined) this.children.set(parent, [track]);
      else list.push(track);
    }
    // While a run is recorded nothing changes its place. Later the busiest queue comes first, and what helped last.
    const settled = run.live !== true;
    const busy = (track: Track): number => (settled && track.kind === 'queue' ? (track.busy ?? 0) : 0);
    // Ranges of a queue are no work.
    const ranges = (track: Track): number => (track.tables?.length === 1 && track.tables[0] === 'marker' ? 1 : 0);
    const last = (track: Track): number => (settled && track.helper === true ? 1 : 0);
    for (const [parent, list] of [...this.children]) {
      const queues = list
        .filter((each) => each.kind === 'queue')
        .sort((a, b) => ranges(a) - ranges(b) || busy(b) - busy(a) || a.sort - b.sort);
      list.sort((a, b) => last(a) - last(b) || a.sort - b.sort || a.id - b.id);
      if (settled) for (let i = 0, q = 0; i < list.length; ++i) if (list[i].kind === 'queue') list[i] = queues[q++];
      if (settled) this.fold(run, parent, list);
    }
  }

  /** Puts queues that did next to nothing into a group of their own, and helping processes into another. */
  private fold(run: Run, parent: number, list: Track[]): void {
    const long = run.run_length ?? run.length;
    const idle = list.filter((each) => each.kind === 'queue' && (each.busy ?? Infinity) < kIdle * long);
    const queues = list.filter((each) => each.kind === 'queue').length;
    const helpers = list.filter((each) => each.helper === true);
    const under = (id: number, name: string, of: Track[], at: number): void => {
      const group: Track = {
        id,
        parent,
        kind: 'group',
        name,
        sort: of[0].sort,
        lanes: 1,
        events: of.reduce((sum, each) => sum + each.events, 0),
      };
      this.byId.set(id, group);
      this.children.set(id, of);
      for (const each of of) this.folder.set(each.id, id);
      const folded = new Set(of);
      list.splice(at, 0, group);
      const kept = list.filter((each) => !folded.has(each));
      list.splice(0, list.length, ...kept);
    };
    if (idle.length >= kLeastFolded && idle.length < queues)
      under(
        kIdleFold - parent,
        `${idle.length} ${idle.every((each) => / stream /.test(each.name)) ? 'streams' : 'queues'} below 0.1 % busy`,
        idle,
        list.length - [...list].reverse().findIndex((each) => each.kind === 'queue'),
      );
    if (helpers.length > 1) under(kHelpers - parent - 1, `${helpers.length} other processes`, helpers, list.length);
  }

  /** Groups that begin closed: groups are opened in order while all that is shown stays within some screens. */
  closedAtFirst(): Set<number> {
    const closed = new Set<number>();
    let rows = this.children.get(-1)?.length ?? 0;
    let level = this.children.get(-1) ?? [];
    while (level.length > 0) {
      const next: Track[] = [];
      for (const track of level) {
        const below = this.children.get(track.id);
        if (below === undefined) continue;
        // Counters of kernels, and what was folded, are for those who look for them.
        if (track.kind === 'queue' || isFold(track) || track.helper === true) closed.add(track.id);
        // The first group is opened whatever it holds: one closed row would show nothing.
        else if (rows + below.length <= kFirstRows || rows <= 4) {
          rows += below.length;
          next.push(...below);
        } else {
          closed.add(track.id);
        }
      }
      level = next;
    }
    return closed;
  }

  ancestors(id: number): number[] {
    const list: number[] = [];
    for (
      let at = this.byId.get(id);
      at !== undefined && at.parent !== at.id && list.length < 64;
      at = this.byId.get(this.folder.get(at.id) ?? at.parent)
    )
      if (at.id !== id) list.push(at.id);
    return list;
  }

  /** The tracks among which one lies, in order; the second: without any choice. */
  siblings(id: number, order: readonly number[]): [number[], number[]] {
    const track = this.byId.get(id);
    const parent = track === undefined ? -1 : (this.folder.get(id) ?? track.parent);
    const own = this.children.get(this.byId.has(parent) && parent !== id ? parent : -1) ?? [];
    return [inOrder(own, order).map((each) => each.id), own.map((each) => each.id)];
  }

  /** The rows of what is looked at with these groups closed; the height of all, and of those pinned at the top. */
  rows(
    closed: ReadonlySet<number>,
    { hidden, matches, pinned, order = [] }: RowChoice = kAll,
  ): { rows: Row[]; height: number; pinned: number } {
    const rows: Row[] = [];
    let top = 0;
    // Tracks that match, and all that they lie in.
    const kept = new Set<number>();
    if (matches !== null)
      for (const track of this.byId.values())
        if (!isFold(track) && matches(track.name))
          for (const id of [track.id, ...this.ancestors(track.id)]) kept.add(id);
    const held = new Set(pinned);
    const visit = (track: Track, depth: number, within: boolean, atTop = false): void => {
      if (!atTop && held.has(track.id)) return;
      if (hidden.has(track.id) || (matches !== null && !atTop && !within && !kept.has(track.id))) return;
      const below = this.children.get(track.id) ?? [];
      const inside = within || (matches !== null && !isFold(track) && matches(track.name));
      // A match is shown, whatever is closed around it.
      const open = !atTop && (!closed.has(track.id) || (matches !== null && !inside));
      const counter = track.kind === 'counter' || track.kind === 'telemetry';
      const group =
        !counter &&
        (track.kind === 'host' ||
          track.kind === 'process' ||
          track.kind === 'rank' ||
          track.kind === 'group' ||
          (track.events === 0 && below.length > 0));
      const lanes = isFold(track) ? 0 : group ? 1 : Math.max(1, track.lanes);
      const high = track.kind === 'stack' ? kStackLane : kLane;
      const height = counter ? kCounter : group ? kGroup : lanes * high + 6;
      rows.push({
        track,
        depth,
        top,
        height,
        what: counter ? 'counter' : group ? 'group' : 'slices',
        lane: group ? kGroup - 10 : counter ? kCounter - 6 : high,
        first: group ? 5 : 3,
        lanes,
        children: below.length > 0 && !atTop,
        open,
        pinned: atTop,
      });
      top += height;
      if (open) for (const child of inOrder(below, order)) visit(child, depth + 1, inside);
    };
    for (const id of pinned) {
      const track = this.byId.get(id);
      if (track !== undefined && !isFold(track)) visit(track, 0, true, true);
    }
    const above = top;
    for (const track of inOrder(this.children.get(-1) ?? [], order)) visit(track, 0, false);
    return { rows, height: top, pinned: above };
  }
}

function inOrder(list: Track[], order: readonly number[]): Track[] {
  if (order.length === 0 || !list.some((each) => order.includes(each.id))) return list;
  const place = (track: Track): number => {
    const at = order.indexOf(track.id);
    return at < 0 ? order.length : at;
  };
  return [...list].sort((a, b) => place(a) - place(b));
}

/** The row at a point of the view: pinned ones lie over the others. */
export function rowUnder(rows: Row[], pinned: number, y: number, scroll: number): Row | undefined {
  return rows[rowAt(rows, y < pinned ? y : y + scroll)];
}

/** The first row that reaches below y; rows.length if none does. */
export function rowAt(rows: Row[], y: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle].top + rows[middle].height <= y) low = middle + 1;
    else high = middle;
  }
  return low;
}
