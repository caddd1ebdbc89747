// Looking for metrics by name, slug or id: how many there are, and from one row that is shown to the next.
import { tick } from 'svelte';
import { shownWhole } from './format';
import { matches, type View } from './model';

export class MetricSearch {
  text = $state('');
  /** Metrics without values are shown too. */
  everything = $state(false);
  /** Rows that are shown. */
  shown = $state(0);
  #hit = $state(-1);
  #rows: HTMLElement[] = [];
  readonly #view: () => View;
  readonly #comparable: boolean;

  /** `comparable`: only tables in which runs can be compared are looked at. */
  constructor(view: () => View, comparable: boolean) {
    this.#view = view;
    this.#comparable = comparable;
  }

  readonly wanted = $derived(this.text.trim().toLowerCase());
  readonly hits = $derived.by(() =>
    this.#view()
      .tables.filter((table) => !this.#comparable || table.from.comparable)
      .flatMap((table) => table.rows.filter((row) => this.wanted !== '' && matches(row, this.wanted))),
  );
  /** What was found, for people. */
  readonly found = $derived.by(() => {
    if (this.wanted === '') return '';
    if (this.hits.length === 0) return 'no metric is called that';
    if (this.shown === 0)
      return this.hits.length === 1
        ? 'one metric, without a value in this run'
        : `${shownWhole(this.hits.length)} ${this.hits.length === 1 ? 'metric' : 'metrics'}, without values in this run`;
    const at = this.#hit >= 0 ? `${this.#hit + 1} of ` : '';
    return `${at}${shownWhole(this.shown)} ${this.shown === 1 ? 'metric' : 'metrics'}`;
  });

  /** Looks at the rows below `root` anew, when they are drawn; brings the first into view where none is. */
  look(root: HTMLElement | undefined): void {
    this.#hit = -1;
    void tick().then(() => {
      this.#rows =
        this.wanted === '' ? [] : [...(root?.querySelectorAll<HTMLElement>('section.block tr[data-slug]') ?? [])];
      this.shown = this.#rows.length;
      if (this.#rows.length === 0) return;
      const seen = this.#rows.findIndex((row) => {
        const { top, bottom } = row.getBoundingClientRect();
        return top > 90 && bottom < innerHeight - 20;
      });
      this.#mark(seen >= 0 ? seen : 0, seen < 0);
    });
  }
  /** To the row `by` further on, round the end. */
  step(by: number): void {
    this.#mark(this.#hit + by);
  }
  #mark(next: number, scroll = true): void {
    for (const row of this.#rows) row.classList.remove('hit');
    this.#hit = this.#rows.length === 0 ? -1 : (next + this.#rows.length) % this.#rows.length;
    this.#rows[this.#hit]?.classList.add('hit');
    if (scroll) this.#rows[this.#hit]?.scrollIntoView({ block: 'center' });
  }
}
