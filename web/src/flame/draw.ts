// A flame graph on its canvas: colours by what a frame is or how its share changed, labels cut to their boxes.
import { oneLine } from '../view/units';
import { kParts, label, shade, type Box, type FlameNode, type Widths } from './tree';

/** Pixels from one row to the next. */
export const kRow = 19;

export interface Look {
  width: number;
  height: number;
  /** What has been scrolled away. */
  top: number;
  dark: boolean;
  /** Two runs are compared. */
  diff: boolean;
  widths: Widths;
  /** Of all frames of run 0 or 1. */
  total: (run: number) => number;
  searching: boolean;
  matches: (node: FlameNode) => boolean;
  /** Frames on the way to the kernel that is chosen; null: all stay in colour. */
  kept: Set<FlameNode> | null;
  chosen: string | null;
  cursor: FlameNode | null;
  hover: FlameNode | null;
}

function colour(node: FlameNode, { dark, diff, widths, total }: Look): string {
  if (diff) {
    // By the change of the frame's share of its run, so that runs of different length can be compared.
    const [now, before] = [0, 1].map((r) => (total(r) > 0 ? widths.value(node, r) / total(r) : 0));
    const change = Math.max(-1, Math.min(1, (now - before) / Math.max(now, before, 1e-9)));
    const strong = Math.min(1, Math.abs(change) * 1.6);
    return `hsl(${change > 0 ? 8 : 214} ${Math.round((dark ? 62 : 80) * strong)}% ${Math.round((dark ? 64 : 88) - (dark ? 8 : 30) * Math.abs(change))}%)`;
  }
  const [, hue, saturation] = kParts[node.frame.look] ?? kParts.native;
  const h = shade(node.frame);
  return `hsl(${hue + (h % 24) - 12} ${Math.round(saturation * (dark ? 0.55 : 1))}% ${(dark ? 58 : 70) + ((h >> 8) % 12) * (dark ? 0.6 : 1)}%)`;
}
/** Cuts texts to a width in pixels. */
function cutter(context: CanvasRenderingContext2D): (text: string, room: number) => string {
  const cuts = new Map<string, string>();
  return (text: string, room: number): string => {
    if (text.length < 400 && context.measureText(text).width <= room) return text;
    const key = `${Math.floor(room)} ${text}`;
    let known = cuts.get(key);
    if (known !== undefined) return known;
    let [low, high] = [0, Math.min(text.length, Math.ceil(room / 2))];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
      else high = middle - 1;
    }
    cuts.set(key, (known = low > 1 ? `${text.slice(0, low)}…` : ''));
    return known;
  };
}

export function drawBoxes(canvas: HTMLCanvasElement, boxes: Box[], look: Look): void {
  const { width, height, top, dark, searching, matches, kept, chosen, cursor, hover } = look;
  const foundColour = dark ? 'hsl(312 62% 66%)' : 'hsl(312 85% 68%)';
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d');
  if (context === null) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  const style = getComputedStyle(canvas);
  const faint = style.getPropertyValue('--line');
  const fit = cutter(context);
  for (const each of boxes) {
    const y = each.depth * kRow + 2 - top;
    if (y + kRow < 0 || y > height) continue;
    const { node } = each;
    const w = Math.max(each.w - (each.w > 3 ? 1 : 0), 0.6);
    if (node === null) {
      context.globalAlpha = 1;
      context.fillStyle = faint;
      context.fillRect(each.x, y, w, kRow - 1);
      continue;
    }
    const found = matches(node);
    context.globalAlpha = each.outer ? 0.45 : (searching && !found) || (kept !== null && !kept.has(node)) ? 0.3 : 1;
    context.fillStyle = found ? foundColour : colour(node, look);
    context.fillRect(each.x, y, w, kRow - 1);
    if (each.w > 26) {
      if (each.outer || context.globalAlpha < 1) context.globalAlpha = Math.max(context.globalAlpha, 0.75);
      context.fillStyle = dark && context.globalAlpha < 1 ? '#dde2e8' : '#14181d';
      context.fillText(fit(oneLine(label(node.frame), 2000), each.w - 9), each.x + 4, y + kRow / 2 - 0.5);
    }
    context.globalAlpha = 1;
    if (
      node === cursor ||
      node === hover ||
      (chosen !== null && kept !== null && node.frame.part === 'device' && node.frame.name === chosen)
    ) {
      context.strokeStyle = node === hover ? style.getPropertyValue('--text') : style.getPropertyValue('--accent');
      context.lineWidth = node === hover ? 1 : 2;
      context.strokeRect(each.x + 0.5, y + 0.5, Math.max(w - 1, 1), kRow - 2);
    }
  }
}
