// Names by number: asked for in batches when something shows them.

import { kColours } from './colour';
import { compactName } from './compact';
import type { Source } from './source';
import { oneLine } from './units';

const kBatch = 400;

export class NameStore {
  private readonly texts = new Map<number, string>();
  private readonly lines = new Map<number, string>();
  /** By name, as names are numbered from 0; -1 = not known. */
  private hues = new Int16Array(1024).fill(-1);
  private missing = new Set<number>();
  private asking = false;

  constructor(
    private readonly source: Source,
    private readonly run: number,
    private readonly changed: () => void,
  ) {}

  /** The whole text; undefined while it is not known. */
  text(id: number): string | undefined {
    const text = this.texts.get(id);
    if (text === undefined) this.missing.add(id);
    return text;
  }
  /** On one line and of bounded length; kernels without return type, namespaces and parameters. */
  line(id: number): string | undefined {
    const known = this.lines.get(id);
    if (known !== undefined) return known;
    const text = this.text(id);
    if (text === undefined) return undefined;
    const line = oneLine(text.startsWith('void ') ? compactName(text) : text);
    this.lines.set(id, line);
    return line;
  }
  /** Index into Theme.names; -1 while it is not known. */
  hue(id: number): number {
    const hue = id < this.hues.length ? this.hues[id] : -1;
    if (hue < 0) this.missing.add(id);
    return hue;
  }
  private keepHue(id: number, hue: number): void {
    if (id >= this.hues.length) {
      const more = new Int16Array(Math.max(this.hues.length * 2, id + 1)).fill(-1);
      more.set(this.hues);
      this.hues = more;
    }
    this.hues[id] = hue;
  }
  get settled(): boolean {
    return this.missing.size === 0 && !this.asking;
  }

  /** Asks for what was looked up and not known. */
  flush(): void {
    if (this.asking || this.missing.size === 0) return;
    const ids = [...this.missing].slice(0, kBatch);
    this.asking = true;
    this.source.names(this.run, ids).then(
      ({ names, colors }) => {
        this.asking = false;
        ids.forEach((id, i) => {
          this.missing.delete(id);
          this.texts.set(id, names[i] ?? '');
          this.keepHue(id, (((colors[i] ?? 0) % kColours) + kColours) % kColours);
        });
        this.changed();
      },
      () => {
        this.asking = false;
        setTimeout(this.changed, 2000);
      },
    );
  }
}
