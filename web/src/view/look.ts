// What a timeline shows and where it looks, for all that draws and finds on it.

import type { Theme } from './colour';
import type { Mark } from './marks';
import type { Row } from './rows';
import type { Place, SliceLink } from './source';

export const kRuler = 26;

/** What lies under a point of the timeline. */
export type Under =
  | {
      what: 'slice';
      row: Row;
      lane: number;
      index: string;
      name: number;
      start: number;
      duration: number;
      flags: number;
    }
  | { what: 'density'; row: Row; lane: number; from: number; to: number; events: number; name: number; cover: number }
  | { what: 'counter'; row: Row; at: number; value: number; min: number; max: number }
  | { what: 'row'; row: Row; at: number };

export interface Selection extends Place {
  links: SliceLink[];
}

/** What the timeline tells the page. */
export interface Listener {
  moved(from: number, to: number, scroll: number): void;
  hovered(under: Under | null, x: number, y: number): void;
  clicked(under: Under | null): void;
  spanned(from: number, to: number, done: boolean): void;
  /** A mark was dragged: by its number. */
  marked(mark: number, at: number): void;
}

export interface Shown {
  rows: Row[];
  height: number;
  /** Of the rows pinned at the top. */
  pinned: number;
  theme: Theme;
  selection: Selection | null;
  span: [number, number] | null;
  /** A stretch that a finding points to. */
  evidence: [number, number] | null;
  chosen: ReadonlySet<number> | null;
  marks: readonly Mark[];
}

export const kFont = '11px system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif';

/** Where the timeline looks. */
export interface Look {
  readonly from: number;
  readonly to: number;
  readonly scroll: number;
  readonly width: number;
  readonly height: number;
  /** Pixels of the canvas to one of the page. */
  readonly ratio: number;
  /** Of the run, in ns. */
  readonly length: number;
  readonly shown: Shown;
  /** The mouse; null while it is elsewhere or drags. */
  readonly pointer: { x: number; y: number } | null;
  readonly under: Under | null;
  xOf(at: number): number;
  timeAt(x: number): number;
}
