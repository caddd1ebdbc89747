// Names on slices and values on counters: texts that fit into the room there is.

import { css } from './colour';
import { kFont, type Look } from './look';
import type { NameStore } from './names';
import type { Label } from './paint';
import type { Row } from './rows';
import { reading } from './units';

export class Labels {
  /** Names drawn in the last frame. */
  drawn = 0;
  private readonly widths = new Map<number, number>();
  private readonly cuts = new Map<string, string>();

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly names: NameStore,
  ) {}

  /** `name` so that it fits into `room`, cut in the middle, where little fits at the end; empty when nothing sensible fits. */
  private fitted(name: number, text: string, room: number): string {
    const { context } = this;
    let full = this.widths.get(name);
    if (full === undefined) {
      full = context.measureText(text).width;
      this.widths.set(name, full);
      if (this.widths.size > 20000) this.widths.clear();
    }
    if (full <= room) return text;
    const keep = Math.floor((text.length * room) / full) - 1;
    if (keep < 3) return '';
    const key = `${name}:${keep}`;
    let cut = this.cuts.get(key);
    if (cut === undefined) {
      let letters = [...text];
      const scale = letters.length / text.length;
      let rest = Math.floor(keep * scale);
      do {
        const head = rest < 14 ? rest : Math.ceil(rest * 0.6);
        cut =
          rest < 3
            ? ''
            : `${letters.slice(0, head).join('')}…${letters.slice(letters.length - (rest - head)).join('')}`;
        --rest;
      } while (cut !== '' && context.measureText(cut).width > room);
      letters = [];
      this.cuts.set(key, cut);
      if (this.cuts.size > 40000) this.cuts.clear();
    }
    return cut;
  }

  draw(texts: { y: number; labels: Label[] }[], counters: { row: Row; y: number }[], look: Look): void {
    const { context } = this;
    const { ratio } = look;
    const { theme, chosen } = look.shown;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = kFont;
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    context.direction = 'ltr';
    this.drawn = 0;
    for (const { y, labels } of texts)
      for (const label of labels) {
        const x0 = label.x0 / ratio;
        const room = (label.x1 - label.x0) / ratio - 8;
        const line = this.names.line(label.name);
        if (line === undefined || room < 16) continue;
        const text = this.fitted(label.name, line, room);
        if (text === '') continue;
        context.fillStyle = chosen !== null && !chosen.has(label.name) ? theme.muted : theme.label;
        context.fillText(text, x0 + 5, y + 0.5);
        ++this.drawn;
      }
    context.font = '10px system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif';
    context.textAlign = 'right';
    context.fillStyle = theme.muted;
    for (const { row, y } of counters) {
      if (row.track.max === undefined) continue;
      const text = reading(row.track.max, row.track.unit);
      const wide = context.measureText(text).width;
      context.fillStyle = css(theme.lane);
      context.globalAlpha = 0.8;
      context.fillRect(look.width - wide - 12, y + 2, wide + 8, 14);
      context.globalAlpha = 1;
      context.fillStyle = theme.muted;
      context.fillText(text, look.width - 8, y + 9.5);
    }
    context.textAlign = 'left';
  }
}
