// The tiles that the page holds: bounded in bytes, asked for as the view needs them, given up when the view has moved on.

import type { Source } from './source';
import { emptyTile, kBins, tileSpan, type Tile } from './tile';

/** A tile and the stretch of time that it stands for in this drawing. */
export interface Piece {
  tile: Tile;
  from: number;
  to: number;
}

interface Held {
  tile: Tile;
  used: number;
  asked: number;
}

interface Request {
  level: number;
  index: number;
  tracks: Set<number>;
  abort: AbortController;
  prefetch: boolean;
}

/** The row of a slice that was drawn from an earlier state of the run. */
export const kNoRow = String(2n ** 64n - 1n);

const kBatch = 48;
const kMostRequests = 5;
const kAgainAfter = 700;
const keyOf = (level: number, index: number): number => level * 2 ** 40 + index;

/** Slices, or nothing at all, are the whole truth of their time at any finer level. */
const isComplete = (tile: Tile): boolean =>
  tile.kind === 'slices' || tile.kind === 'empty' || (tile.kind === 'density' && tile.finest === true);

export class TileStore {
  private readonly held = new Map<number, Map<number, Held>>();
  private bytes = 0;
  private frame = 0;
  private wanted = new Map<number, { level: number; index: number; tracks: Set<number> }>();
  private requests: Request[] = [];
  private failedUntil = 0;
  /** The sentence of the last request that failed; empty once one succeeded again. */
  fault = '';
  /** For tests and the bench. */
  readonly counts = { asked: 0, given: 0, aborted: 0, evicted: 0 };

  constructor(
    private readonly source: Source,
    private readonly run: number,
    private length: number,
    private readonly changed: () => void,
    private readonly limit = 96 << 20,
  ) {}

  /** The level at which one tile holds the whole run. */
  get topLevel(): number {
    return Math.max(0, Math.ceil(Math.log2(Math.max(1, this.length) / kBins)));
  }
  /** The level for a view: bins of half a pixel to a pixel. */
  levelFor(nsPerPixel: number): number {
    return Math.max(0, Math.min(this.topLevel, Math.floor(Math.log2(Math.max(nsPerPixel, 1e-9)))));
  }
  get heldBytes(): number {
    return this.bytes;
  }
  /** No tile that the last frame lacked is under way or left to ask for. */
  get settled(): boolean {
    return this.wanted.size === 0 && this.requests.every((request) => request.prefetch);
  }

  /** A run that grew: what reaches its old end is stale. */
  grow(length: number): void {
    const old = this.length;
    this.length = length;
    for (const tiles of this.held.values())
      for (const [key, held] of tiles)
        if ((held.tile.index + 1) * tileSpan(held.tile.level) >= old) {
          this.bytes -= held.tile.bytes;
          tiles.delete(key);
        }
  }

  /** Another state of a run with the same tracks: what is held is drawn until its successor comes, and its rows are nobody's. */
  renew(length: number): void {
    this.length = length;
    for (const tiles of this.held.values())
      for (const held of tiles.values()) {
        held.tile.provisional = true;
        held.asked = -kAgainAfter;
        if (held.tile.kind === 'slices') held.tile.row.fill(BigInt(kNoRow));
      }
    for (const request of this.requests) request.abort.abort();
    this.requests = [];
  }

  begin(): void {
    ++this.frame;
    this.wanted = new Map();
  }

  private find(track: number, level: number, index: number): Held | undefined {
    const held = this.held.get(track)?.get(keyOf(level, index));
    if (held !== undefined) held.used = this.frame;
    return held;
  }

  private want(level: number, index: number, track: number): void {
    const key = keyOf(level, index);
    let entry = this.wanted.get(key);
    if (entry === undefined) this.wanted.set(key, (entry = { level, index, tracks: new Set() }));
    entry.tracks.add(track);
  }

  /** What there is to draw of a track in [from, to) at this level; what is missing or stale is asked for at end(). */
  pieces(track: number, level: number, from: number, to: number): Piece[] {
    const pieces: Piece[] = [];
    const span = tileSpan(level);
    const last = Math.max(0, Math.ceil(this.length / span) - 1);
    const first = Math.max(0, Math.floor(from / span));
    const end = Math.min(last, Math.ceil(to / span) - 1);
    const add = (tile: Tile, a: number, b: number): void => {
      const before = pieces[pieces.length - 1];
      if (before !== undefined && before.tile === tile && before.to === a) before.to = b;
      else pieces.push({ tile, from: a, to: b });
    };
    for (let index = first; index <= end; ++index) {
      const a = index * span;
      const b = a + span;
      const exact = this.find(track, level, index);
      if (exact !== undefined) {
        add(exact.tile, a, b);
        if (exact.tile.provisional && performance.now() - exact.asked > kAgainAfter) this.want(level, index, track);
        continue;
      }
      let found: Held | undefined;
      for (let up = level + 1, at = Math.floor(index / 2); up <= this.topLevel; ++up, at = Math.floor(at / 2)) {
        found = this.find(track, up, at);
        if (found !== undefined) break;
      }
      const complete = found !== undefined && !found.tile.provisional && isComplete(found.tile);
      if (found !== undefined && complete) {
        add(found.tile, a, b);
        continue;
      }
      this.want(level, index, track);
      const left = level > 0 ? this.find(track, level - 1, index * 2) : undefined;
      const right = level > 0 ? this.find(track, level - 1, index * 2 + 1) : undefined;
      if (left !== undefined && right !== undefined) {
        add(left.tile, a, a + span / 2);
        add(right.tile, a + span / 2, b);
      } else if (found !== undefined) {
        add(found.tile, a, b);
      }
    }
    return pieces;
  }

  /** After a frame: asks for what it lacked, then for the neighbours of what it shows, and gives up what nobody needs. */
  end(level: number, from: number, to: number, tracks: number[]): void {
    for (const request of this.requests) {
      if (request.prefetch) continue;
      const still = this.wanted.get(keyOf(request.level, request.index));
      if (still === undefined || ![...request.tracks].some((track) => still.tracks.has(track))) {
        request.abort.abort();
        ++this.counts.aborted;
      }
    }
    this.requests = this.requests.filter((request) => !request.abort.signal.aborted);
    if (performance.now() < this.failedUntil) return;
    for (const request of this.requests) {
      const entry = this.wanted.get(keyOf(request.level, request.index));
      if (entry === undefined) continue;
      for (const track of request.tracks) entry.tracks.delete(track);
      request.prefetch = false;
      if (entry.tracks.size === 0) this.wanted.delete(keyOf(request.level, request.index));
    }
    const middle = (from + to) / 2;
    const distance = (entry: { level: number; index: number }): number =>
      Math.abs((entry.index + 0.5) * tileSpan(entry.level) - middle);
    for (const entry of [...this.wanted.values()].sort((a, b) => distance(a) - distance(b))) {
      const rest = [...entry.tracks];
      for (let at = 0; at < rest.length && this.requests.length < kMostRequests; at += kBatch)
        this.ask(entry.level, entry.index, rest.slice(at, at + kBatch), false);
    }
    if (this.requests.length === 0) this.prefetch(level, from, to, tracks);
    this.evict();
  }

  private prefetch(level: number, from: number, to: number, tracks: number[]): void {
    const span = tileSpan(level);
    const last = Math.max(0, Math.ceil(this.length / span) - 1);
    const places: [number, number][] = [
      [level, Math.ceil(to / span)],
      [level, Math.floor(from / span) - 1],
    ];
    if (level < this.topLevel)
      places.push([level + 1, Math.floor(from / span / 2)], [level + 1, Math.floor((Math.ceil(to / span) - 1) / 2)]);
    for (const [at, index] of places) {
      if (index < 0 || (at === level && index > last) || this.requests.length >= 2) continue;
      const missing = tracks.filter((track) => {
        for (let up = at, i = index; up <= this.topLevel; ++up, i = Math.floor(i / 2)) {
          const tile = this.held.get(track)?.get(keyOf(up, i))?.tile;
          if (tile !== undefined && (up === at || isComplete(tile))) return false;
        }
        return true;
      });
      if (missing.length > 0) this.ask(at, index, missing.slice(0, kBatch), true);
    }
  }

  private ask(level: number, index: number, tracks: number[], prefetch: boolean): void {
    const request: Request = { level, index, tracks: new Set(tracks), abort: new AbortController(), prefetch };
    this.requests.push(request);
    ++this.counts.asked;
    void this.source.tiles(this.run, level, index, tracks, request.abort.signal).then(
      (tiles) => {
        if (request.abort.signal.aborted) return;
        this.requests = this.requests.filter((each) => each !== request);
        this.fault = '';
        ++this.counts.given;
        const given = new Set<number>();
        for (const tile of tiles) {
          given.add(tile.track);
          this.put(tile);
        }
        // A track that the answer leaves out has nothing there.
        for (const track of tracks)
          if (!given.has(track)) this.put(emptyTile({ track, level, index, lanes: 1, provisional: false }));
        this.changed();
      },
      (error: unknown) => {
        if (request.abort.signal.aborted) return;
        this.requests = this.requests.filter((each) => each !== request);
        this.fault = error instanceof Error ? error.message : String(error);
        this.failedUntil = performance.now() + 2000;
        setTimeout(this.changed, 2050);
        this.changed();
      },
    );
  }

  private put(tile: Tile): void {
    let tiles = this.held.get(tile.track);
    if (tiles === undefined) this.held.set(tile.track, (tiles = new Map<number, Held>()));
    const key = keyOf(tile.level, tile.index);
    const old = tiles.get(key);
    if (old !== undefined) this.bytes -= old.tile.bytes;
    tiles.set(key, { tile, used: this.frame, asked: performance.now() });
    this.bytes += tile.bytes;
    if (tile.provisional) setTimeout(this.changed, kAgainAfter + 50);
  }

  private evict(): void {
    if (this.bytes <= this.limit) return;
    const all: { track: number; key: number; held: Held }[] = [];
    for (const [track, tiles] of this.held)
      for (const [key, held] of tiles)
        if (held.used < this.frame && held.tile.level < this.topLevel) all.push({ track, key, held });
    all.sort((a, b) => a.held.used - b.held.used);
    for (const { track, key, held } of all) {
      if (this.bytes <= this.limit * 0.8) break;
      this.held.get(track)?.delete(key);
      this.bytes -= held.tile.bytes;
      ++this.counts.evicted;
    }
  }
}
