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
  }

  read(hash: URLSearchParams): void {
    this.only = hash.get('only') ?? '';
    this.hidden = new Set(numbers(hash.get('hide')));
    this.pinned = numbers(hash.get('pin'));
  }
  parts(): string[] {
    const parts: string[] = [];
    if (this.only !== '') parts.push(`only=${encodeURIComponent(this.only)}`);
    if (this.hidden.size > 0) parts.push(`hide=${[...this.hidden].join(',')}`);
    if (this.pinned.length > 0) parts.push(`pin=${this.pinned.join(',')}`);
    return parts;
  }
}
