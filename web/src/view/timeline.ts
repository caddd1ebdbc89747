// The timeline's canvases: what lies under the rows in view, drawn from tiles, and the mouse and keys on it. The tree of names
// beside it and everything around are Svelte's.

import { blend } from './colour';
import { Labels } from './labels';
import { kRuler, type Listener, type Look, type Shown, type Under } from './look';
import type { NameStore } from './names';
import { drawOverlay, drawRuler, yOf } from './overlay';
import { counterColumns, paintCounter, Raster, type Label } from './paint';
import { rowAt, kLane, topOf, type Row } from './rows';
import type { TileStore } from './tile_store';
import { findUnder } from './under';
import { tickStep } from './units';

// Keys: per millisecond that they are held, and what a tap moves.
const kZoomRate = 0.0055;
const kPanRate = 1.1;
const kTapZoom = 1.1;
const kTapPan = 0.05;

export class Timeline implements Look {
  from = 0;
  to = 1;
  scroll = 0;
  shown: Shown;
  length = 1;
  /** Times of the last frames' drawing and the moments at which they began, in ms; for the bench. */
  readonly frames: { at: number; took: number }[] = [];

  private raster = new Raster(1);
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);
  private queued = false;
  private overlayQueued = false;
  width = 0;
  height = 0;
  ratio = 1;
  private mouse: { x: number; y: number } | null = null;
  under: Under | null = null;
  private drag: {
    kind: 'pan' | 'span' | 'edge' | 'mark';
    x: number;
    y: number;
    from: number;
    to: number;
    scroll: number;
    anchor: number;
    moved: boolean;
  } | null = null;
  private readonly keys = new Set<string>();
  private keyAt = 0;
  private flight: { from: [number, number]; to: [number, number]; scroll: [number, number]; began: number } | null =
    null;
  private readonly labels: Labels;
  private readonly context: CanvasRenderingContext2D;
  private readonly overContext: CanvasRenderingContext2D;
  private readonly rulerContext: CanvasRenderingContext2D;
  private readonly stop = new AbortController();

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly over: HTMLCanvasElement,
    private readonly ruler: HTMLCanvasElement,
    private readonly tiles: TileStore,
    private readonly names: NameStore,
    private readonly listener: Listener,
    shown: Shown,
  ) {
    this.shown = shown;
    const context = (of: HTMLCanvasElement, alpha: boolean): CanvasRenderingContext2D => {
      const made = of.getContext('2d', { alpha });
      if (made === null) throw new Error('This browser has no 2D canvas.');
      return made;
    };
    this.context = context(canvas, false);
    this.labels = new Labels(this.context, names);
    this.overContext = context(over, true);
    this.rulerContext = context(ruler, false);
    const signal = this.stop.signal;
    over.addEventListener('pointerdown', (event) => this.down(event, false), { signal });
    ruler.addEventListener('pointerdown', (event) => this.down(event, true), { signal });
    for (const each of [over, ruler]) {
      each.addEventListener('pointermove', (event) => this.move(event), { signal });
      each.addEventListener('pointerup', (event) => this.up(event), { signal });
      each.addEventListener('pointercancel', () => (this.drag = null), { signal });
      each.addEventListener('pointerleave', () => this.leave(), { signal });
      each.addEventListener('wheel', (event) => this.wheel(event), { signal, passive: false });
    }
    over.addEventListener('dblclick', () => this.zoomIn(), { signal });
  }

  destroy(): void {
    this.stop.abort();
    this.keys.clear();
    this.flight = null;
  }

  resize(width: number, height: number): void {
    this.ratio = window.devicePixelRatio || 1;
    const w = Math.max(1, Math.round(width * this.ratio));
    const h = Math.max(1, Math.round(height * this.ratio));
    this.width = width;
    this.height = height;
    for (const each of [this.canvas, this.over]) {
      each.width = w;
      each.height = h;
    }
    this.ruler.width = w;
    this.ruler.height = Math.round(kRuler * this.ratio);
    this.raster = new Raster(w);
    this.image = new ImageData(w, h);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.draw();
  }

  // ---- where the view is

  /** What the view may show, where that is more than the run: another one beside it. */
  bounds: [number, number] | null = null;
  /** The stretch that is shown at first. */
  home: [number, number] | null = null;
  private get limits(): [number, number] {
    return this.bounds ?? [0, this.length];
  }
  private clamp(from: number, to: number): [number, number] {
    const [low, high] = this.limits;
    const margin = (high - low) * 0.03;
    const most = high - low + 2 * margin;
    const span = Math.min(Math.max(to - from, 8), most);
    const middle = (from + to) / 2;
    let a = middle - span / 2;
    a = Math.max(low - margin, Math.min(a, high + margin - span));
    return [a, a + span];
  }
  private mostScroll(): number {
    return Math.max(0, this.shown.height - this.height);
  }
  set(from: number, to: number, scroll = this.scroll): void {
    [this.from, this.to] = this.clamp(from, to);
    this.scroll = Math.max(0, Math.min(scroll, this.mostScroll()));
    this.listener.moved(this.from, this.to, this.scroll);
    this.redraw();
  }
  /** Moves there within a fifth of a second. */
  fly(from: number, to: number, scroll = this.scroll): void {
    const [a, b] = this.clamp(from, to);
    const end = Math.max(0, Math.min(scroll, this.mostScroll()));
    if (window.matchMedia('(prefers-reduced-motion: reduce)').matches) {
      this.set(a, b, end);
      return;
    }
    this.flight = { from: [this.from, a], to: [this.to, b], scroll: [this.scroll, end], began: performance.now() };
    this.redraw();
  }
  /** Where the view goes, if it is moving, else where it is. */
  get target(): [number, number] {
    return this.flight === null ? [this.from, this.to] : [this.flight.from[1], this.flight.to[1]];
  }
  get moving(): boolean {
    return this.flight !== null || this.keys.size > 0;
  }
  zoom(factor: number, x = this.width / 2): void {
    this.flight = null;
    const at = this.from + ((this.to - this.from) * x) / this.width;
    const [low, high] = this.limits;
    const [least, most] = [8, (high - low) * 1.06];
    const span = Math.min(most, Math.max(least, (this.to - this.from) * factor));
    const share = x / this.width;
    this.set(at - span * share, at + span * (1 - share));
  }
  pan(pixels: number): void {
    this.flight = null;
    const by = (pixels * (this.to - this.from)) / this.width;
    this.set(this.from + by, this.to + by);
  }
  /** The scroll that shows a lane of a track; null when its row is not there. */
  scrollFor(track: number, lane: number): number | null {
    const row = this.shown.rows.find((each) => each.track.id === track);
    if (row === undefined) return null;
    if (row.pinned) return this.scroll;
    const above = this.shown.pinned;
    if (row.what === 'group' && row.children && row.open) {
      // A group is shown with what it holds: as much of it as there is room for.
      const after = this.shown.rows.find((each) => each.top > row.top && each.depth <= row.depth);
      const bottom = after?.top ?? this.shown.height;
      if (row.top >= this.scroll + above && bottom <= this.scroll + this.height) return this.scroll;
      return Math.max(0, Math.min(row.top - above - 8, this.mostScroll()));
    }
    const y = row.top + row.first + (row.what === 'slices' ? lane * row.lane : 0);
    if (y >= this.scroll + above + 8 && y + row.lane <= this.scroll + this.height - 8) return this.scroll;
    return Math.max(0, y - above - (this.height - above) / 2);
  }
  get pointer(): { x: number; y: number } | null {
    return this.drag === null ? this.mouse : null;
  }
  get labelsDrawn(): number {
    return this.labels.drawn;
  }
  timeAt(x: number): number {
    return this.from + ((this.to - this.from) * x) / this.width;
  }
  xOf(at: number): number {
    return ((at - this.from) / (this.to - this.from)) * this.width;
  }

  // ---- drawing

  redraw(): void {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame((now) => {
      this.queued = false;
      if (this.stop.signal.aborted) return;
      this.advance(now);
      const began = performance.now();
      this.draw();
      this.frames.push({ at: now, took: performance.now() - began });
      if (this.frames.length > 4000) this.frames.splice(0, 2000);
    });
  }
  private redrawOver(): void {
    if (this.overlayQueued || this.queued) return;
    this.overlayQueued = true;
    requestAnimationFrame(() => {
      this.overlayQueued = false;
      if (this.stop.signal.aborted) return;
      drawOverlay(this.overContext, this);
      drawRuler(this.rulerContext, this);
    });
  }

  /** Keys that are held and flights move the view by the time that passed. */
  private advance(now: number): void {
    if (this.keys.size > 0) {
      const dt = Math.min(50, Math.max(0, now - this.keyAt));
      this.keyAt = Math.max(this.keyAt, now);
      const x = this.mouse?.x ?? this.width / 2;
      const zooming = (this.keys.has('w') ? -1 : 0) + (this.keys.has('s') ? 1 : 0);
      const panning = (this.keys.has('d') ? 1 : 0) - (this.keys.has('a') ? 1 : 0);
      if (zooming !== 0) this.zoom(Math.exp(zooming * dt * kZoomRate), x);
      if (panning !== 0) this.pan(panning * dt * kPanRate);
      this.redraw();
      return;
    }
    if (this.flight === null) return;
    const { from, to, scroll, began } = this.flight;
    const t = Math.min(1, (performance.now() - began) / 220);
    const s = 1 - (1 - t) ** 3;
    // The span changes geometrically, so that a flight from an hour to a microsecond is even.
    const span0 = from[0] === from[1] && to[0] === to[1] ? to[0] - from[0] : to[0] - from[0];
    const span1 = to[1] - from[1];
    const span = span0 * (span1 / span0) ** s;
    const weight = Math.abs(span1 - span0) < 1e-9 * span0 ? s : (span - span0) / (span1 - span0);
    const middle = (from[0] + to[0]) / 2 + ((from[1] + to[1]) / 2 - (from[0] + to[0]) / 2) * weight;
    const flight = this.flight;
    this.set(middle - span / 2, middle + span / 2, scroll[0] + (scroll[1] - scroll[0]) * s);
    if (t < 1) this.flight = flight;
    else {
      this.flight = null;
      this.set(from[1], to[1], scroll[1]);
    }
  }

  private draw(): void {
    const { image, pixels, ratio } = this;
    if (image === null) return;
    const { rows, theme, pinned: above } = this.shown;
    const width = image.width;
    const height = image.height;
    const perPixel = (this.to - this.from) / width;
    const scale = { from: this.from, perPixel, width };
    const level = this.tiles.levelFor(perPixel);
    pixels.fill(theme.back);
    this.scroll = Math.max(0, Math.min(this.scroll, this.mostScroll()));
    // The background of a row with the grid of the ruler and what lies outside of the run.
    const step = tickStep(((this.to - this.from) / this.width) * 110);
    const ground = (base: number): Uint32Array => {
      const line = new Uint32Array(width).fill(base);
      for (let tick = Math.ceil(this.from / step) * step; tick < this.to; tick += step) {
        const x = Math.floor((tick - this.from) / perPixel);
        if (x >= 0 && x < width) line[x] = theme.grid;
      }
      const left = Math.min(width, Math.max(0, Math.floor(-this.from / perPixel)));
      const right = Math.max(0, Math.min(width, Math.ceil((this.length - this.from) / perPixel)));
      line.fill(theme.outside, 0, left);
      line.fill(theme.outside, right);
      return line;
    };
    const plain = ground(theme.lane);
    const groupGround = ground(theme.group);
    const lineColour = blend(theme.lane, theme.grid, 256);

    const fillRows = (from: number, to: number, line: Uint32Array): void => {
      for (let y = Math.max(0, from); y < Math.min(height, to); ++y) pixels.set(line, y * width);
    };
    const texts: { y: number; labels: Label[] }[] = [];
    const counters: { row: Row; y: number }[] = [];
    const ink = { theme, hue: (name: number) => this.names.hue(name), chosen: this.shown.chosen };
    const drawn: number[] = [];
    this.tiles.begin();
    const end = this.length;
    // Pinned rows come last and lie over what is scrolled below them.
    const inView: Row[] = [];
    for (let i = rowAt(rows, this.scroll + above); i < rows.length && rows[i].top < this.scroll + this.height; ++i)
      if (!rows[i].pinned) inView.push(rows[i]);
    for (const row of [...inView, ...rows.filter((each) => each.pinned)]) {
      const [begin, limit] = [topOf(row, this.scroll), row.pinned ? 0 : above];
      const y0 = Math.round(begin * ratio);
      const y1 = Math.round((begin + row.height) * ratio);
      fillRows(y0, y1, row.what === 'group' ? groupGround : plain);
      if (row.what === 'counter') {
        drawn.push(row.track.id);
        const pieces = this.tiles.pieces(row.track.id, level, this.from, this.to);
        paintCounter(
          row,
          counterColumns(pieces, scale),
          pixels,
          y0,
          Math.round(row.height * ratio),
          width,
          height,
          ratio,
          theme,
        );
        if (begin >= limit) counters.push({ row, y: begin });
      } else if (row.lanes > 0) {
        drawn.push(row.track.id);
        const pieces = this.tiles.pieces(row.track.id, level, this.from, this.to);
        for (let lane = 0; lane < row.lanes; ++lane) {
          const top = begin + row.first + lane * row.lane;
          const a = Math.round(top * ratio);
          const b = Math.round((top + row.lane - (row.what === 'group' ? 0 : 2)) * ratio);
          if (b <= 0) continue;
          if (a >= height) break;
          const labels: Label[] | null = row.what === 'slices' ? [] : null;
          const under = row.what === 'group' ? theme.group : theme.lane;
          if (
            !this.raster.lane(
              pieces,
              lane,
              scale,
              under,
              row.what === 'group' ? groupGround : plain,
              ink,
              end,
              labels,
              26 * ratio,
            )
          )
            continue;
          fillRows(a, b, this.raster.row);
          const red = Math.max(1, Math.round(2 * ratio));
          for (let x = 0; this.raster.anyFailed && x < width; ++x)
            if (this.raster.failed(x))
              for (let y = Math.max(0, b - red); y < Math.min(height, b); ++y)
                pixels[y * width + x] = theme.dark ? 0xff5e6bff : 0xff1c26c4;
          if (labels !== null && labels.length > 0 && top >= limit) texts.push({ y: top + (row.lane - 2) / 2, labels });
        }
      }
      if (y1 - 1 >= 0 && y1 - 1 < height) pixels.fill(lineColour, (y1 - 1) * width, y1 * width);
    }
    this.context.putImageData(image, 0, 0);
    this.labels.draw(texts, counters, this);
    this.tiles.end(level, this.from, this.to, drawn);
    this.names.flush();
    this.hover();
    drawOverlay(this.overContext, this);
    drawRuler(this.rulerContext, this);
  }

  // ---- what lies where

  /** What lies under a point; null below the rows. */
  find(x: number, y: number): Under | null {
    return findUnder(this, this.tiles, x, y);
  }
  /** The middle of a lane of a track; null where its row is closed. */
  yOf(track: number, lane: number): { y: number; exact: boolean } | null {
    return yOf(this, track, lane);
  }

  /** What lies under the mouse now: asked again with each drawing, as the view may have moved below it. */
  private hover(): void {
    if (this.mouse === null || this.drag !== null) return;
    const { x, y } = this.mouse;
    const inside = x >= 0 && x <= this.width && y >= 0 && y <= this.height;
    this.under = inside ? this.find(this.mouse.x, this.mouse.y) : null;
    this.over.style.cursor = this.under !== null && this.under.what !== 'row' ? 'pointer' : 'default';
    this.listener.hovered(this.under, this.mouse.x, this.mouse.y);
  }

  // ---- mouse and keys

  private place(event: PointerEvent | WheelEvent): { x: number; y: number } {
    const box = this.over.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }
  private down(event: PointerEvent, ruler: boolean): void {
    if (event.button !== 0) return;
    const { x, y } = this.place(event);
    this.flight = null;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    let kind: 'pan' | 'span' | 'edge' | 'mark' = ruler || event.shiftKey ? 'span' : 'pan';
    let anchor = this.timeAt(x);
    const span = this.shown.span;
    if (span !== null && !event.shiftKey) {
      // The edges of the selected span can be moved.
      const near = span.findIndex((edge) => Math.abs(this.xOf(edge) - x) <= 4);
      if (near >= 0) {
        kind = 'edge';
        anchor = span[1 - near];
      }
    }
    const mark = ruler ? this.markNear(x) : -1;
    if (mark >= 0) [kind, anchor] = ['mark', mark];
    this.drag = { kind, x, y, from: this.from, to: this.to, scroll: this.scroll, anchor, moved: false };
  }
  /** The mark whose flag lies at this place of the ruler; -1 = none. */
  private markNear(x: number): number {
    return this.shown.marks.findIndex(({ at }) => x >= this.xOf(at) - 4 && x <= this.xOf(at) + 16);
  }
  /** Where a mark is to be made: at the mouse, or at the near edge of what lies under it; in the middle without a mouse. */
  markAt(): number {
    if (this.mouse === null) return (this.from + this.to) / 2;
    const at = this.timeAt(this.mouse.x);
    const { under } = this;
    const edges =
      under?.what === 'slice'
        ? [under.start, ...(under.duration < 0 ? [] : [under.start + under.duration])]
        : under?.what === 'density'
          ? [under.from, under.to]
          : [];
    const near = edges.filter((edge) => Math.abs(this.xOf(edge) - (this.mouse?.x ?? 0)) <= 8);
    return near.sort((a, b) => Math.abs(a - at) - Math.abs(b - at))[0] ?? at;
  }
  private move(event: PointerEvent): void {
    const { x, y } = this.place(event);
    this.mouse = { x, y };
    const drag = this.drag;
    if (drag === null) {
      const span = this.shown.span;
      this.hover();
      if (span !== null && span.some((edge) => Math.abs(this.xOf(edge) - x) <= 4)) this.over.style.cursor = 'ew-resize';
      this.redrawOver();
      return;
    }
    if (!drag.moved && Math.abs(x - drag.x) < 4 && Math.abs(y - drag.y) < 4) return;
    drag.moved = true;
    if (drag.kind === 'pan') {
      const by = ((drag.x - x) * (drag.to - drag.from)) / this.width;
      this.over.style.cursor = 'grabbing';
      this.set(drag.from + by, drag.to + by, drag.scroll + drag.y - y);
    } else if (drag.kind === 'mark') {
      this.listener.marked(drag.anchor, this.timeAt(x));
      this.redrawOver();
    } else {
      const at = Math.max(0, Math.min(this.length, this.timeAt(x)));
      const anchor = Math.max(0, Math.min(this.length, drag.anchor));
      this.listener.spanned(Math.min(at, anchor), Math.max(at, anchor), false);
    }
  }
  private up(event: PointerEvent): void {
    const drag = this.drag;
    this.drag = null;
    if (drag === null) return;
    const { x, y } = this.place(event);
    this.mouse = { x, y };
    if (drag.moved) {
      if (drag.kind !== 'pan' && drag.kind !== 'mark' && this.shown.span !== null)
        this.listener.spanned(this.shown.span[0], this.shown.span[1], true);
      this.over.style.cursor = 'default';
    } else if (drag.kind !== 'mark') {
      this.listener.clicked(drag.kind === 'span' && event.currentTarget === this.ruler ? null : this.find(x, y));
    }
    this.hover();
    this.redrawOver();
  }
  private leave(): void {
    if (this.drag !== null) return;
    this.mouse = null;
    this.under = null;
    this.listener.hovered(null, 0, 0);
    this.redrawOver();
  }
  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const { x } = this.place(event);
    const unit = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? this.height : 1;
    if (event.ctrlKey || event.metaKey) {
      this.zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY * unit)) * 0.0025), x);
    } else if (event.shiftKey && event.deltaX === 0) {
      this.pan(event.deltaY * unit);
    } else {
      if (event.deltaX !== 0) this.pan(event.deltaX * unit);
      if (event.deltaY !== 0) this.set(this.from, this.to, this.scroll + event.deltaY * unit);
    }
    this.hover();
  }
  private zoomIn(): void {
    if (this.mouse === null) return;
    const under = this.find(this.mouse.x, this.mouse.y);
    if (under === null) return;
    if (under.what === 'slice' && under.duration > 0)
      this.fly(under.start - under.duration * 0.1, under.start + under.duration * 1.1);
    else {
      const at = this.timeAt(this.mouse.x);
      const span = (this.to - this.from) / 10;
      this.fly(at - span / 2, at + span / 2);
    }
  }
  /** What a tap of a key moves at least; one that is held goes on from there when that much time has passed. */
  private tap(key: string): void {
    const x = this.mouse?.x ?? this.width / 2;
    if (key === 'w' || key === 's') this.zoom(key === 'w' ? 1 / kTapZoom : kTapZoom, x);
    else this.pan((key === 'd' ? 1 : -1) * kTapPan * this.width);
    const step = key === 'w' || key === 's' ? Math.log(kTapZoom) / kZoomRate : (kTapPan * this.width) / kPanRate;
    if (this.keys.size === 0) this.keyAt = performance.now() + step;
  }
  /** A key went down: true when it moves the view. */
  key(key: string): boolean {
    const lower = key.toLowerCase();
    const known: Record<string, string> = { w: 'w', a: 'a', s: 's', d: 'd', arrowleft: 'a', arrowright: 'd' };
    const held = known[lower];
    if (held !== undefined) {
      if (!this.keys.has(held)) this.tap(held);
      this.keys.add(held);
      this.flight = null;
      this.redraw();
      return true;
    }
    if (lower === 'arrowup' || lower === 'arrowdown') {
      this.set(this.from, this.to, this.scroll + (lower === 'arrowup' ? -3 : 3) * kLane);
      return true;
    }
    if (lower === '+' || lower === '=' || lower === '-') {
      this.zoom(lower === '-' ? 1.5 : 1 / 1.5, this.mouse?.x);
      return true;
    }
    if (lower === '0' || lower === 'home') {
      this.fly(...(this.bounds ?? this.home ?? this.limits));
      return true;
    }
    return false;
  }
  release(key?: string): void {
    if (key === undefined) this.keys.clear();
    else {
      const lower = key.toLowerCase();
      this.keys.delete(lower === 'arrowleft' ? 'a' : lower === 'arrowright' ? 'd' : lower);
    }
    this.redraw();
  }
  /** For tests: the canvas's pixels of one line, as 0xAABBGGRR. */
  line(y: number): Uint32Array {
    const data = this.context.getImageData(0, Math.round(y * this.ratio), this.canvas.width, 1).data;
    return new Uint32Array(data.buffer.slice(0));
  }
}
