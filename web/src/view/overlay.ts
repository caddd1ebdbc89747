// What is drawn over the rows of the timeline, and its ruler.

import { css } from './colour';
import { kFont, kRuler, type Look } from './look';
import { topOf, type Row } from './rows';
import { moment, oneLine, tickStep, time } from './units';

/** Moments above the rows. */
export function drawRuler(context: CanvasRenderingContext2D, look: Look): void {
  const { theme, span } = look.shown;
  const ratio = look.ratio;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = css(theme.back);
  context.fillRect(0, 0, look.width, kRuler);
  if (span !== null) {
    const [a, b] = [look.xOf(span[0]), look.xOf(span[1])];
    context.globalAlpha = 0.18;
    context.fillStyle = theme.accent;
    context.fillRect(a, 0, Math.max(1, b - a), kRuler);
    context.globalAlpha = 1;
  }
  const step = tickStep(((look.to - look.from) / look.width) * 110);
  context.font = kFont;
  context.textBaseline = 'middle';
  context.strokeStyle = theme.line;
  context.lineWidth = 1;
  context.beginPath();
  for (let tick = Math.floor(look.from / step) * step; tick < look.to; tick += step) {
    for (let i = 0; i < 5; ++i) {
      const x = Math.floor(look.xOf(tick + (i * step) / 5)) + 0.5;
      context.moveTo(x, kRuler - (i === 0 ? 11 : 4));
      context.lineTo(x, kRuler);
    }
  }
  context.moveTo(0, kRuler - 0.5);
  context.lineTo(look.width, kRuler - 0.5);
  context.stroke();
  context.fillStyle = theme.muted;
  // Far inside a long run ticks are told from the left edge of the view, whose own moment stands there.
  const digits = Math.log10(Math.max(Math.abs(look.to), 1) / step);
  const relative = digits > 6;
  const base = relative ? Math.ceil(look.from / (step * 10)) * step * 10 : 0;
  for (let tick = Math.floor(look.from / step) * step; tick < look.to; tick += step) {
    const x = look.xOf(tick);
    if (x < -100) continue;
    const isBase = relative && Math.abs(tick - base) < step / 2;
    const text =
      relative && !isBase
        ? `${tick - base < 0 ? '−' : '+'}${moment(Math.abs(Math.round((tick - base) / step)) * step, step)}`
        : moment(Math.round(tick / step) * step, step);
    if (x + 4 + context.measureText(text).width > look.width) continue;
    context.fillStyle = isBase ? theme.text : theme.muted;
    context.fillText(text, x + 4, 10);
  }
  look.shown.marks.forEach(({ at }, i) => {
    const x = look.xOf(at);
    if (x < -20 || x > look.width + 20) return;
    const text = String(i + 1);
    const w = context.measureText(text).width + 8;
    context.fillStyle = theme.accent;
    context.fillRect(Math.round(x), kRuler - 16, w, 14);
    context.fillRect(Math.round(x), kRuler - 16, 1, 16);
    context.fillStyle = css(theme.back);
    context.fillText(text, Math.round(x) + 4, kRuler - 8.5);
  });
  if (look.pointer !== null) {
    const text = moment(
      look.timeAt(look.pointer.x),
      Math.max(1, 10 ** Math.floor(Math.log10((look.to - look.from) / look.width))),
    );
    const w = context.measureText(text).width + 10;
    const x = Math.min(Math.max(0, look.pointer.x - w / 2), look.width - w);
    context.fillStyle = css(theme.group);
    context.fillRect(x, 2, w, 16);
    context.fillStyle = theme.text;
    context.fillText(text, x + 5, 10);
  }
}

/** The middle of a lane of a track; null where its row is closed. */
export function yOf(look: Look, track: number, lane: number): { y: number; exact: boolean } | null {
  const row = look.shown.rows.find((each) => each.track.id === track);
  if (row === undefined) return null;
  return {
    y: topOf(row, look.scroll) + row.first + (row.what === 'slices' ? lane * row.lane : 0) + (row.lane - 2) / 2,
    exact: row.what === 'slices',
  };
}

/** Marks, and the time from each to the next. */
function drawMarks(context: CanvasRenderingContext2D, look: Look): void {
  const { theme, marks } = look.shown;
  context.font = kFont;
  context.textBaseline = 'middle';
  const y = look.height - 12;
  marks.forEach(({ at, note }, i) => {
    const x = Math.round(look.xOf(at));
    context.fillStyle = theme.accent;
    context.strokeStyle = theme.accent;
    if (x >= 0 && x <= look.width) context.fillRect(x, 0, 1, look.height);
    if (note !== '' && x > -400 && x < look.width) {
      const text = oneLine(note, 60);
      const w = context.measureText(text).width + 10;
      const next = marks[i + 1] === undefined ? look.width : look.xOf(marks[i + 1].at);
      if (w <= next - x - 2) {
        context.fillStyle = css(theme.group);
        context.fillRect(x + 1, 24, w, 16);
        context.fillStyle = theme.text;
        context.fillText(text, x + 6, 32.5);
        context.fillStyle = theme.accent;
      }
    }
    const before = i > 0 ? look.xOf(marks[i - 1].at) : null;
    if (before === null || x < 0 || before > look.width) return;
    const text = time(at - marks[i - 1].at);
    const w = context.measureText(text).width + 10;
    const [a, b] = [Math.max(before, 0), Math.min(x, look.width)];
    context.fillRect(a, y, b - a, 1);
    if (b - a < w + 4) return;
    context.fillRect((a + b - w) / 2, y - 8, w, 16);
    context.fillStyle = css(theme.back);
    context.fillText(text, (a + b - w) / 2 + 5, y + 0.5);
  });
}

/** What lies over the rows: a span, the mouse, what is selected and what it is connected with. */
export function drawOverlay(context: CanvasRenderingContext2D, look: Look): void {
  const { theme, selection, span, evidence } = look.shown;
  const ratio = look.ratio;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, look.width, look.height);
  if (evidence !== null) {
    const [a, b] = [look.xOf(evidence[0]), look.xOf(evidence[1])];
    context.fillStyle = theme.exposed;
    context.globalAlpha = 0.1;
    context.fillRect(a, 0, Math.max(1, b - a), look.height);
    context.globalAlpha = 0.7;
    context.fillRect(a - 1, 0, 1, look.height);
    context.fillRect(b, 0, 1, look.height);
    context.globalAlpha = 1;
  }
  if (span !== null) {
    const [a, b] = [look.xOf(span[0]), look.xOf(span[1])];
    context.globalAlpha = theme.dark ? 0.45 : 0.32;
    context.fillStyle = css(theme.back);
    context.fillRect(0, 0, Math.max(0, a), look.height);
    context.fillRect(b, 0, Math.max(0, look.width - b), look.height);
    context.globalAlpha = 1;
    context.fillStyle = theme.accent;
    context.fillRect(Math.round(a) - 1, 0, 1, look.height);
    context.fillRect(Math.round(b), 0, 1, look.height);
    const text = time(span[1] - span[0]);
    context.font = `600 ${kFont}`;
    const w = context.measureText(text).width + 12;
    const x = Math.min(Math.max((Math.max(a, 0) + Math.min(b, look.width)) / 2 - w / 2, 2), look.width - w - 2);
    context.fillRect(x, 4, w, 18);
    context.fillStyle = css(theme.back);
    context.textBaseline = 'middle';
    context.fillText(text, x + 6, 13.5);
  }
  drawMarks(context, look);
  if (look.pointer !== null) {
    context.fillStyle = theme.muted;
    context.globalAlpha = 0.35;
    context.fillRect(Math.round(look.pointer.x), 0, 1, look.height);
    context.globalAlpha = 1;
  }
  const outline = (start: number, stop: number, row: Row, lane: number, colour: string, thick: number): void => {
    const y = topOf(row, look.scroll) + row.first + (row.what === 'slices' ? lane * row.lane : 0);
    const a = Math.max(-4, look.xOf(start));
    const b = Math.min(look.width + 4, look.xOf(stop));
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.strokeRect(a - thick / 2, y - thick / 2, Math.max(b - a, 1) + thick, row.lane - 2 + thick);
  };
  if (look.pointer !== null && look.under !== null) {
    if (look.under.what === 'slice')
      outline(
        look.under.start,
        look.under.duration < 0 ? look.length : look.under.start + look.under.duration,
        look.under.row,
        look.under.lane,
        theme.text,
        1,
      );
    else if (look.under.what === 'density')
      outline(look.under.from, look.under.to, look.under.row, look.under.lane, theme.text, 1);
    else if (look.under.what === 'counter' && look.pointer !== null) {
      const row = look.under.row;
      const low = Math.min(0, row.track.min ?? 0);
      const high = Math.max(row.track.max ?? 1, low + 1e-12);
      const y = topOf(row, look.scroll) + row.height - 3 - ((look.under.value - low) / (high - low)) * (row.height - 7);
      context.fillStyle = theme.text;
      context.beginPath();
      context.arc(look.pointer.x, y, 3, 0, 2 * Math.PI);
      context.fill();
    }
  }
  if (selection === null) return;
  const row = look.shown.rows.find((each) => each.track.id === selection.track);
  if (row !== undefined)
    outline(
      selection.start,
      selection.duration < 0 ? look.length : selection.start + selection.duration,
      row,
      selection.lane,
      theme.accent,
      2,
    );
  const here = yOf(look, selection.track, selection.lane);
  for (const link of selection.links) {
    const there = yOf(look, link.track, link.lane);
    if (here === null || there === null) continue;
    // From the one that came first: the end of a call's begin to the begin of what it caused.
    const caused = link.start >= selection.start;
    const [a, b] = caused ? [selection, link] : [link, selection];
    const [ya, yb] = caused ? [here.y, there.y] : [there.y, here.y];
    const xa = look.xOf(a.start + Math.min(Math.max(a.duration, 0), Math.max(0, b.start - a.start)));
    const xb = look.xOf(b.start);
    if (Math.max(xa, xb) < -50 || Math.min(xa, xb) > look.width + 50) continue;
    const bend = Math.max(16, Math.min(120, Math.abs(xb - xa) / 2));
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.5;
    context.globalAlpha = 0.9;
    context.beginPath();
    context.moveTo(xa, ya);
    context.bezierCurveTo(xa + bend, ya, xb - bend, yb, xb - 5, yb);
    context.stroke();
    context.fillStyle = theme.accent;
    context.beginPath();
    context.moveTo(xb, yb);
    context.lineTo(xb - 7, yb - 4);
    context.lineTo(xb - 7, yb + 4);
    context.fill();
    context.beginPath();
    context.arc(xa, ya, 2.5, 0, 2 * Math.PI);
    context.fill();
    context.globalAlpha = 1;
  }
}
