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
const kFirstRows = 100;

export class TrackTree {
  readonly byId = new Map<number, Track>();
  readonly children = new Map<number, Track[]>();

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
    for (const list of this.children.values()) list.sort((a, b) => a.sort - b.sort || a.id - b.id);
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
        // Counters of kernels are for those who look for them.
        if (track.kind === 'queue') closed.add(track.id);
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
      at = this.byId.get(at.parent)
    )
      if (at.id !== id) list.push(at.id);
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
      const group =
        !counter &&
        (track.kind === 'host' ||
          track.kind === 'process' ||
          track.kind === 'rank' ||
          track.kind === 'group' ||
          (track.events === 0 && below.length > 0));
      const lanes = group ? 1 : Math.max(1, track.lanes);
      const height = counter ? kCounter : group ? kGroup : lanes * kLane + 6;
      rows.push({
        track,
        depth,
        top,
        height,
        what: counter ? 'counter' : group ? 'group' : 'slices',
        lane: group ? kGroup - 10 : counter ? kCounter - 6 : kLane,
        first: group ? 5 : 3,
        lanes,
        children: below.length > 0,
        open,
      });
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
