// Which tracks the timeline shows and which stay at its top; the address keeps it.

import { filterOf } from './filter';

const numbers = (text: string | null): number[] =>
  (text ?? '')
    .split(',')
    .filter((each) => /^-?\d+$/.test(each))
    .map(Number);

export class TrackChoice {
  /** Only tracks whose names match; '' = all. */
  only = $state('');
  hidden = $state.raw<ReadonlySet<number>>(new Set());
  pinned = $state.raw<readonly number[]>([]);
  /** Tracks that were moved, in their order: they come before the others of their group. */
  order = $state.raw<readonly number[]>([]);

  readonly matches: ((name: string) => boolean) | null = $derived.by(() => {
    const { pattern } = filterOf(this.only);
    return pattern === null ? null : (name: string) => pattern.test(name);
  });

  hide(track: number): void {
    this.hidden = new Set([...this.hidden, track]);
  }
  showAll(): void {
    this.hidden = new Set();
  }
  pin(track: number): void {
    this.pinned = this.pinned.includes(track) ? this.pinned.filter((each) => each !== track) : [...this.pinned, track];
  }
  /** Moves one of the tracks of a group, or of those pinned, to another place among them; `own`: their order without any choice. */
  move(track: number, to: number, siblings: readonly number[], own: readonly number[]): void {
    const next = siblings.filter((each) => each !== track);
    next.splice(Math.max(0, Math.min(to, next.length)), 0, track);
    if (this.pinned.includes(track)) {
      this.pinned = next;
      return;
    }
    // Those at the end that stand as they would anyway need not be told.
    let told = next.length;
    const follow = (count: number): number[] => own.filter((each) => !next.slice(0, count).includes(each));
    while (told > 0 && follow(told - 1).every((each, i) => each === next[told - 1 + i])) --told;
    this.order = [...this.order.filter((each) => !next.includes(each)), ...next.slice(0, told)];
  }
  /** All that keeps a track from being seen, so that a link to it leads there. */
  admit(tracks: number[], name: string): void {
    if (tracks.some((each) => this.hidden.has(each)))
      this.hidden = new Set([...this.hidden].filter((each) => !tracks.includes(each)));
    if (this.matches !== null && !this.matches(name)) this.only = '';
  }
  clear(): void {
    this.only = '';
    this.hidden = new Set();
    this.pinned = [];
    this.order = [];
  }

  read(hash: URLSearchParams): void {
    this.only = hash.get('only') ?? '';
    this.hidden = new Set(numbers(hash.get('hide')));
    this.pinned = numbers(hash.get('pin'));
    this.order = numbers(hash.get('order'));
  }
  parts(): string[] {
    const parts: string[] = [];
    if (this.only !== '') parts.push(`only=${encodeURIComponent(this.only)}`);
    if (this.hidden.size > 0) parts.push(`hide=${[...this.hidden].join(',')}`);
    if (this.pinned.length > 0) parts.push(`pin=${this.pinned.join(',')}`);
    if (this.order.length > 0) parts.push(`order=${this.order.join(',')}`);
    return parts;
  }
}
