// The source of the self-contained page: the runs that it holds (embedded_run.ts), and what changed between them.

import { EmbeddedRun, type Comparison } from './embedded_run';
import { Packed } from './packed';
import {
  SourceError,
  type Alignment,
  type Diff,
  type Flame,
  type KernelDetails,
  type Overview,
  type QueryResult,
  type Schema,
  type SearchResult,
  type SliceDetails,
  type Source,
  type SpanTables,
  type ViewDocument,
} from './source';
import type { Tile } from './tile';

export class EmbeddedSource implements Source {
  readonly served = false;
  private readonly byId: ReadonlyMap<number, EmbeddedRun>;

  private constructor(private readonly runs: EmbeddedRun[]) {
    this.byId = new Map(runs.map((run) => [run.header.document.runs[0].id, run]));
  }

  /** Unpacks the text of the page: a run after the other, each in base64. */
  static async open(text: string): Promise<EmbeddedSource> {
    const packed = await Promise.all(text.trim().split(/\s+/).map(Packed.open));
    return new EmbeddedSource(packed.map((each) => new EmbeddedRun(each)));
  }

  private run(id: number): EmbeddedRun {
    return this.byId.get(id) ?? this.runs[0];
  }
  private comparison(a: number, b: number): Comparison | undefined {
    return this.runs[0].header.comparisons?.find((each) => each.a === a && each.b === b);
  }
  private compared(a: number, b: number): Comparison {
    const found = this.comparison(a, b);
    if (found === undefined)
      throw new SourceError('This page compares its first run with each other one; tacho view compares any two.');
    return found;
  }

  document(): Promise<ViewDocument> {
    const { document } = this.runs[0].header;
    return Promise.resolve({ ...document, runs: this.runs.flatMap((run) => run.header.document.runs) });
  }
  overview(run: number): Promise<Overview> {
    return this.run(run).overview();
  }
  tiles(run: number, level: number, index: number, tracks: number[]): Promise<Tile[]> {
    return this.run(run).tiles(level, index, tracks);
  }
  names(run: number, ids: number[]): Promise<{ names: string[]; colors: number[] }> {
    return this.run(run).names(ids);
  }
  span(run: number, from: number, to: number): Promise<SpanTables> {
    return this.run(run).span(from, to);
  }
  slice(run: number, row: string): Promise<SliceDetails> {
    return this.run(run).slice(row);
  }
  search(run: number, expression: string, matchCase: boolean, after: string | null): Promise<SearchResult> {
    return this.run(run).search(expression, matchCase, after);
  }
  kernel(run: number, name: number, from: number, to: number): Promise<KernelDetails> {
    return this.run(run).kernel(name, from, to);
  }
  query(): Promise<QueryResult> {
    return Promise.reject(new SourceError('SQL needs tacho: open the run with tacho view.'));
  }
  schema(): Promise<Schema> {
    return Promise.resolve({ tables: [] });
  }
  flame(
    run: number,
    choice: { from?: number; threads?: boolean; base?: number; by?: 'function' | 'line' },
  ): Promise<Flame | null> {
    if (choice.from !== undefined || choice.threads === true) return Promise.resolve(null);
    if (choice.base === undefined) return Promise.resolve(this.run(run).header.flame ?? null);
    return Promise.resolve(choice.by === 'line' ? null : (this.comparison(choice.base, run)?.flame ?? null));
  }
  async diff(a: number, b: number, by: string): Promise<Diff> {
    const made = this.compared(a, b).diff[by];
    if (made === undefined) throw new SourceError(`This page does not compare ${by}s.`);
    if ('error' in made) throw new SourceError(made.error);
    return Promise.resolve(made);
  }
  async align(a: number, b: number): Promise<Alignment> {
    return Promise.resolve(this.compared(a, b).align);
  }
  extra(what: string, run: number): Promise<unknown> {
    // What runs share stands in the first that has it.
    const holds = [this.run(run), ...this.runs].find((each) => each.header.extras?.[what] !== undefined);
    const made = holds?.header.extras?.[what] ?? null;
    const error = (made as { error?: unknown } | null)?.error;
    return typeof error === 'string' ? Promise.reject(new SourceError(error)) : Promise.resolve(made);
  }
}
