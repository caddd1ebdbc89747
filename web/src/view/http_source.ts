// The source of the served page: requests to the server that sent it, with the token that stands in the page's address.

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
import { decodeTiles, type Tile } from './tile';

export class HttpSource implements Source {
  readonly served = true;
  private readonly token: string;
  /** The state of a recording that requests are about; 0 = there is only one. */
  generation = 0;

  constructor(address: string) {
    this.token = new URL(address).searchParams.get('token') ?? '';
  }

  private async ask(path: string, signal?: AbortSignal, body?: string): Promise<Response> {
    let response: Response;
    const about =
      this.generation === 0 || /[?&]generation=/.test(path)
        ? path
        : `${path}${path.includes('?') ? '&' : '?'}generation=${this.generation}`;
    try {
      response = await fetch(about, {
        method: body === undefined ? 'GET' : 'POST',
        body,
        signal,
        headers: { 'X-Tacho-Token': this.token },
        cache: 'no-store',
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new SourceError(
        'tacho does not answer any more; run tacho view again and open the address that it prints.',
      );
    }
    if (!response.ok) {
      const text = await response.text();
      let sentence = `tacho answered with status ${response.status}.`;
      try {
        sentence = (JSON.parse(text) as { error?: string }).error ?? sentence;
      } catch {
        // Not JSON: the status has to do.
      }
      throw new SourceError(sentence, response.status);
    }
    return response;
  }
  private async json<T>(path: string, signal?: AbortSignal): Promise<T> {
    return (await (await this.ask(path, signal)).json()) as T;
  }
  /** null where the server has no such view. */
  private async optional<T>(path: string, signal?: AbortSignal): Promise<T | null> {
    try {
      return await this.json<T>(path, signal);
    } catch (error) {
      if (error instanceof SourceError && error.status === 404) return null;
      throw error;
    }
  }

  document(): Promise<ViewDocument> {
    return this.json('/api/document');
  }
  overview(run: number): Promise<Overview> {
    return this.json(`/api/overview?run=${run}`);
  }
  async tiles(run: number, level: number, index: number, tracks: number[], signal: AbortSignal): Promise<Tile[]> {
    const response = await this.ask(
      `/api/tiles?run=${run}&level=${level}&index=${index}&tracks=${tracks.join(',')}`,
      signal,
    );
    return decodeTiles(await response.arrayBuffer(), level, index);
  }
  names(run: number, ids: number[]): Promise<{ names: string[]; colors: number[] }> {
    return this.json(`/api/names?run=${run}&ids=${ids.join(',')}`);
  }
  span(run: number, from: number, to: number, signal?: AbortSignal): Promise<SpanTables> {
    return this.json(`/api/span?run=${run}&from=${Math.floor(from)}&to=${Math.ceil(to)}`, signal);
  }
  slice(run: number, row: string): Promise<SliceDetails> {
    return this.json(`/api/slice?run=${run}&row=${row}`);
  }
  search(
    run: number,
    expression: string,
    matchCase: boolean,
    after: string | null,
    signal?: AbortSignal,
  ): Promise<SearchResult> {
    const cursor = after === null ? '' : `&after=${encodeURIComponent(after)}`;
    return this.json(
      `/api/search?run=${run}&q=${encodeURIComponent(expression)}&case=${matchCase ? 1 : 0}&limit=1000${cursor}`,
      signal,
    );
  }
  kernel(run: number, name: number, from: number, to: number, signal?: AbortSignal): Promise<KernelDetails | null> {
    return this.optional(`/api/kernel?run=${run}&name=${name}&from=${Math.floor(from)}&to=${Math.ceil(to)}`, signal);
  }
  async query(run: number, sql: string, signal?: AbortSignal): Promise<QueryResult> {
    const text = await (await this.ask(`/api/query?run=${run}`, signal, sql)).text();
    // Integers that a double cannot hold stay as they are written.
    const keep = (_: string, value: unknown, context?: { source?: string }): unknown =>
      typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
        ? (context?.source ?? value)
        : value;
    return JSON.parse(text, keep as (key: string, value: unknown) => unknown) as QueryResult;
  }
  schema(): Promise<Schema> {
    return this.json('/api/schema');
  }
  /** An answer that tacho computes in the background: asks until it is there. */
  progress: ((done: number) => void) | null = null;
  private async computed<T>(path: string, signal?: AbortSignal): Promise<T> {
    // Of a recording that goes on, all of it about one state.
    const about = this.generation === 0 ? path : `${path}&generation=${this.generation}`;
    for (let wait = 100; ; wait = Math.min(1000, wait * 1.5)) {
      const answer = await this.json<T | { pending: true; done?: number }>(about, signal);
      if (typeof answer !== 'object' || answer === null || !('pending' in answer)) return answer;
      this.progress?.(answer.done ?? 0);
      await new Promise((done) => setTimeout(done, wait));
      signal?.throwIfAborted();
    }
  }
  flame(
    run: number,
    choice: { from?: number; to?: number; threads?: boolean; base?: number; by?: 'function' | 'line' },
    signal?: AbortSignal,
  ): Promise<Flame> {
    const span =
      choice.from === undefined || choice.to === undefined
        ? ''
        : `&from=${Math.floor(choice.from)}&to=${Math.ceil(choice.to)}`;
    return this.computed(
      `/api/flame?run=${run}${span}${choice.threads === true ? '&threads=1' : ''}${choice.base === undefined ? '' : `&base=${choice.base}`}${choice.by === undefined ? '' : `&by=${choice.by}`}`,
      signal,
    );
  }
  diff(a: number, b: number, by: string, signal?: AbortSignal): Promise<Diff> {
    return this.computed(`/api/diff?run=${b}&base=${a}&by=${by}`, signal);
  }
  align(a: number, b: number, signal?: AbortSignal): Promise<Alignment> {
    return this.computed(`/api/align?run=${b}&base=${a}`, signal);
  }
  extra(what: string, run: number): Promise<unknown> {
    return this.optional(`/api/${what}?run=${run}`);
  }
}
