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
}

export const kLane = 18;
const kGroup = 24;
const kCounter = 40;

export class TrackTree {
  readonly byId = new Map<number, Track>();
  readonly children = new Map<number, Track[]>();

  constructor(run: Run) {
    for (const track of run.tracks) this.byId.set(track.id, track);
    for (const track of run.tracks) {
      const parent = this.byId.has(track.parent) && track.parent !== track.id ? track.parent : -1;
      const list = this.children.get(parent);
      if (list === undefined) this.children.set(parent, [track]);
      else list.push(track);
    }
    for (const list of this.children.values()) list.sort((a, b) => a.sort - b.sort || a.id - b.id);
  }

  /** Groups that begin closed: what would fill more than some screens stays out of the way. */
  closedAtFirst(): Set<number> {
    const closed = new Set<number>();
    let rows = 0;
    const count = (id: number): number => 1 + (this.children.get(id) ?? []).reduce((sum, child) => sum + count(child.id), 0);
    const visit = (track: Track): void => {
      const below = this.children.get(track.id) ?? [];
      ++rows;
      if (below.length > 0 && rows + count(track.id) > 80 && below.every((child) => !this.children.has(child.id))) {
        closed.add(track.id);
        return;
      }
      below.forEach(visit);
    };
    (this.children.get(-1) ?? []).forEach(visit);
    return closed;
  }

  ancestors(id: number): number[] {
    const list: number[] = [];
    for (let at = this.byId.get(id); at !== undefined && at.parent !== at.id && list.length < 64; at = this.byId.get(at.parent)) if (at.id !== id) list.push(at.id);
    return list;
  }

  /** The rows with these groups closed, and the height of all. */
  rows(closed: ReadonlySet<number>): { rows: Row[]; height: number } {
    const rows: Row[] = [];
    let top = 0;
    const visit = (track: Track, depth: number): void => {
      const below = this.children.get(track.id) ?? [];
      const open = !closed.has(track.id);
      const counter = track.kind === 'counter' || track.kind === 'telemetry';
      const group = !counter && (track.kind === 'host' || track.kind === 'process' || track.kind === 'rank' || track.kind === 'group' || (track.events === 0 && below.length > 0));
      const lanes = group ? 1 : Math.max(1, track.lanes);
      const height = counter ? kCounter : group ? kGroup : lanes * kLane + 6;
      rows.push({ track, depth, top, height, what: counter ? 'counter' : group ? 'group' : 'slices', lane: group ? kGroup - 10 : counter ? kCounter - 6 : kLane, first: group ? 5 : 3, lanes, children: below.length > 0, open });
      top += height;
      if (open) for (const child of below) visit(child, depth + 1);
    };
    for (const track of this.children.get(-1) ?? []) visit(track, 0);
    return { rows, height: top };
  }
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
