// What a document and a run are shown with at first, and which slices begin and end at known moments.

import type { Place, Run, Source, Track, TrackKind, ViewDocument } from './source';
import { tileSpan } from './tile';

/** Whoever asked to compare two runs sees what changed; profile folders are compared by their counters. */
export function firstViewOf(document: ViewDocument | null): 'overview' | 'diff' | 'counters' {
  const { compare = null, runs = [], views = [] } = document ?? {};
  if (compare === null || !views.includes('diff')) return 'overview';
  const both = [compare.a, compare.b].map((id) => runs.find((each) => each.id === id));
  if (both.every((each) => each?.views?.includes('analysis') === true && each.events === 0)) return 'counters';
  return both.every((each) => (each?.events ?? 0) > 0) ? 'diff' : 'overview';
}

/** All that takes time, without marks and readings beside it. */
export function homeOf(run: Run): [number, number] {
  const begin = run.run_begin ?? 0;
  const end = Math.min(run.length, begin + (run.run_length ?? run.length));
  return end > begin ? [begin, end] : [0, Math.max(1, run.length)];
}

/** Tracks that show the work of others, or values. */
const kWithoutSlices: TrackKind[] = ['host', 'process', 'rank', 'group', 'counter', 'telemetry'];
/** Fine enough for slices one by one in most traces. */
const kFineLevel = 10;

/** The slices of these tracks that begin and end at these moments, to a nanosecond. */
export async function slicesAt(
  source: Source,
  run: number,
  tracks: Track[],
  [start, end]: [number, number],
): Promise<Place[]> {
  const ids = tracks.filter((each) => !kWithoutSlices.includes(each.kind) && each.events > 0).map((each) => each.id);
  for (let level = kFineLevel; level >= 0; level -= 2) {
    const made = await source
      .tiles(run, level, Math.floor(start / tileSpan(level)), ids, new AbortController().signal)
      .catch(() => []);
    const found: Place[] = [];
    for (const tile of made) {
      if (tile.kind !== 'slices') continue;
      for (let lane = 0; lane < tile.lanes; ++lane)
        for (let i = tile.lanesAt[lane]; i < tile.lanesAt[lane + 1]; ++i) {
          const [begin, duration] = [tile.start[i], tile.duration[i]];
          if (Math.abs(begin - start) < 1 && Math.abs(begin + duration - end) < 1)
            found.push({ row: String(tile.row[i]), track: tile.track, lane, start: begin, duration });
        }
    }
    if (found.length > 0 || made.every((tile) => tile.kind !== 'density')) return found;
  }
  return [];
}
