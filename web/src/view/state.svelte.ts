// What the page shows, in one place: the run, the view of time, what is selected. The address's hash holds all of it.

import { themeOf, type Theme } from './colour';
import { NameStore } from './names';
import { plainName } from '../model';
import { TrackChoice } from './track_choice.svelte';
import { firstViewOf, homeOf, slicesAt } from './places';
import { TrackTree } from './rows';
import type {
  FoundName,
  Hit,
  Overview,
  Place,
  Run,
  SearchResult,
  SliceDetails,
  Source,
  SpanTables,
  Track,
  ViewDocument,
} from './source';
import { kNoRow, TileStore } from './tile_store';

const kViews = 'overview timeline kernels code flame memory diff counters ranks sql'.split(' ') as ViewName[];
export type ViewName =
  'overview' | 'timeline' | 'kernels' | 'flame' | 'counters' | 'ranks' | 'sql' | 'diff' | 'code' | 'memory';

/** Keys of the address that belong to single views. */
const kWords = ['flame', 'zoom', 'diff', 'pair', 'counters', 'code', 'memory', 'sql', 'plot', 'marks'];

const sentence = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export class App {
  document = $state.raw<ViewDocument | null>(null);
  fault = $state('');
  run = $state(0);
  private viewNow = $state<ViewName>('overview');
  from = $state(0);
  to = $state(1);
  scroll = $state(0);
  closed = $state.raw<ReadonlySet<number>>(new Set());
  span = $state.raw<[number, number] | null>(null);
  evidence = $state.raw<[number, number] | null>(null);
  overview = $state.raw<Overview | null>(null);
  /** The generation that `overview` is about. */
  overviewOf = -1;
  overviewFault = $state('');
  slice = $state.raw<SliceDetails | null>(null);
  selected = $state<string | null>(null);
  tables = $state.raw<SpanTables | null>(null);
  tablesFault = $state('');
  tablesBusy = $state(false);
  /** The kernel that all views show; name -1: the run does not have it, only counters do. */
  private kernelNow = $state.raw<{ name: number; text: string } | null>(null);
  /** What single views keep in the address, by key (kWords). */
  words = $state.raw<Readonly<Record<string, string>>>({});
  /** The rank that all views show. */
  private rankNow = $state<number | null>(null);
  /** Of the view of ranks: what colours the heat map, the step and the collective chosen. */
  heat = $state('late');
  private stepNow = $state<number | null>(null);
  private collectiveNow = $state<number | null>(null);
  query = $state('');
  matchCase = $state(false);
  found = $state.raw<{ names: FoundName[]; hits: Hit[]; more: string | null } | null>(null);
  searchFault = $state('');
  searching = $state(false);
  hit = $state(-1);
  /** What the view itself found of the search, where it searches other things than the timeline's names; '' = it does not. */
  inView = $state('');
  help = $state(false);
  theme = $state<'auto' | 'light' | 'dark'>('auto');
  systemDark = $state(false);
  /** When the state of the recording that is shown came. */
  asOf = $state.raw(new Date());
  /** A newer state of the recording is there than the one shown. */
  newer = $state(false);
  /** Raised when tiles or names came. */
  arrived = $state(0);
  /** Where the timeline is to go; the timeline takes it. */
  goal = $state.raw<{ from: number; to: number; track?: number; lane?: number; scroll?: number } | null>(null);

  tiles!: TileStore;
  names!: NameStore;
  tree = $state.raw<TrackTree>(new TrackTree({ tracks: [] } as unknown as Run));
  /** How many kernels the table of kernels lists; -1 while it is being added up. */
  kernelsListed = $state(-1);
  /** What the view of counters shows, in full precision; nothing of the page looks at it. */
  analysis: unknown = null;
  /** Called when tiles or names came, without Svelte in between. */
  onData: () => void = () => undefined;

  readonly dark = $derived(this.theme === 'dark' || (this.theme === 'auto' && this.systemDark));
  readonly colours: Theme = $derived(themeOf(this.dark));
  readonly current: Run | null = $derived(
    this.document?.runs.find((run) => run.id === this.run) ?? this.document?.runs[0] ?? null,
  );
  readonly length = $derived(Math.max(1, this.current?.length ?? 1));
  readonly home: [number, number] = $derived(this.current === null ? [0, 1] : homeOf(this.current));
  /** Whether the view is not the first one. */
  readonly away = $derived.by(() => {
    const slack = (this.home[1] - this.home[0]) * 1e-9;
    return Math.abs(this.from - this.home[0]) > slack || Math.abs(this.to - this.home[1]) > slack;
  });
  readonly choice = new TrackChoice();
  readonly shown = $derived(this.tree.rows(this.closed, this.choice));
  /** Names that stay in colour: the kernel chosen, or what the search found. */
  readonly chosen: ReadonlySet<number> | null = $derived(
    this.found !== null && this.query !== ''
      ? new Set(this.found.names.map((each) => each.name))
      : this.kernel !== null && this.kernel.name >= 0
        ? new Set([this.kernel.name])
        : null,
  );

  private readonly extras = new Map<string, Promise<unknown>>();
  private spanAbort = new AbortController();
  private spanTimer: ReturnType<typeof setTimeout> | undefined;
  private searchAbort = new AbortController();
  private searchTimer: ReturnType<typeof setTimeout> | undefined;
  private hashTimer: ReturnType<typeof setTimeout> | undefined;
  /** The state is to become a history entry of its own; the address is being read. */
  private jumped = false;
  private reading = false;

  /** `beside`: one of several on a page, without an address of its own. */
  constructor(
    readonly source: Source,
    private readonly beside = false,
  ) {
    const dark = window.matchMedia('(prefers-color-scheme: dark)');
    this.systemDark = dark.matches;
    dark.addEventListener('change', () => (this.systemDark = dark.matches));
    if (!beside) window.addEventListener('hashchange', () => this.readHash());
  }

  async load(): Promise<void> {
    try {
      this.document = await this.source.document();
    } catch (error) {
      this.fault = sentence(error);
      return;
    }
    // A run that has just begun: its first state takes a moment.
    while (this.document.live === true && this.document.runs.length === 0) {
      this.fault = 'Recording; nothing has been written so far.';
      await new Promise((done) => setTimeout(done, 500));
      try {
        this.document = await this.source.document();
        this.fault = '';
      } catch (error) {
        this.fault = sentence(error);
        return;
      }
    }
    if (this.document.runs.length === 0) {
      this.fault = 'There is no run to show.';
      return;
    }
    const asked = Number(new URLSearchParams(location.hash.slice(1)).get('run') ?? this.document.runs[0].id);
    this.open(this.document.runs.some((run) => run.id === asked) ? asked : this.document.runs[0].id);
    this.readHash();
    void this.poll();
  }
  /** Whether the source has this optional view of the run. */
  has(view: string): boolean {
    return (this.document?.views?.includes(view) ?? false) || (this.current?.views?.includes(view) ?? false);
  }
  /** A further view's JSON, asked for once. */
  extra(what: string): Promise<unknown> {
    const key = `${this.run} ${what}`;
    let made = this.extras.get(key);
    if (made === undefined) {
      made = this.source.extra(what, this.run);
      this.extras.set(key, made);
      made.catch(() => this.extras.delete(key));
    }
    return made;
  }

  private readonly dataArrived = (): void => {
    ++this.arrived;
    this.onData();
  };

  /** Makes this run the one that is shown. */
  open(run: number): void {
    this.run = run;
    const current = this.current;
    if (current === null) return;
    if (this.source.generation !== undefined) this.source.generation = current.generation ?? 0;
    this.tiles = new TileStore(this.source, run, this.length, this.dataArrived);
    this.names = new NameStore(this.source, run, this.dataArrived);
    this.tree = new TrackTree(current);
    this.closed = this.tree.closedAtFirst();
    [this.from, this.to] = this.home;
    this.choice.clear();
    this.scroll = 0;
    this.span = null;
    this.evidence = null;
    this.slice = null;
    this.selected = null;
    this.tables = null;
    this.kernelNow = null;
    this.rankNow = null;
    this.stepNow = null;
    this.collectiveNow = null;
    this.found = null;
    this.overview = null;
    void this.loadOverview();
  }

  private async loadOverview(): Promise<void> {
    const run = this.run;
    const generation = this.current?.generation ?? 0;
    try {
      const overview = await this.source.overview(run);
      // A newer state has asked for its own, and answers may overtake each other.
      if (run !== this.run || generation !== (this.current?.generation ?? 0)) return;
      this.overview = overview;
      this.overviewOf = generation;
      this.overviewFault = '';
      if (overview.provisional === true || overview.findings_ready === false)
        setTimeout(() => void this.loadOverview(), 500);
    } catch (error) {
      this.overviewFault = sentence(error);
    }
  }

  /** Asks again while the index of a run is being built or the run goes on. */
  private async poll(): Promise<void> {
    for (;;) {
      const runs = this.document?.runs ?? [];
      const live = runs.some((run) => run.live === true);
      if (!live && runs.every((run) => (run.ready ?? 1) >= 1)) return;
      await new Promise((done) => setTimeout(done, live ? 1000 : 500));
      let next: ViewDocument;
      try {
        next = await this.source.document();
      } catch (error) {
        this.fault = sentence(error);
        return;
      }
      const before = this.current;
      const grown = next.runs.find((run) => run.id === before?.id);
      if (before !== null && grown !== undefined && (grown.generation ?? 0) !== (before.generation ?? 0)) {
        // What is selected belongs to the state that is shown.
        this.newer = this.selected !== null || this.span !== null || this.kernel !== null || this.query !== '';
        if (!this.newer) this.adopt(next, before, grown);
        continue;
      }
      this.document = next;
      const now = this.current;
      if (before === null || now === null) continue;
      if (
        now.tracks.length !== before.tracks.length ||
        now.tracks.some((track, i) => track.lanes !== before.tracks[i].lanes || track.max !== before.tracks[i].max)
      )
        this.tree = new TrackTree(now);
      if (now.length !== before.length || now.events !== before.events) {
        const follows = this.follow(before, now);
        this.tiles.grow(now.length);
        if (follows !== null) this.goal = follows;
        void this.loadOverview();
      }
      ++this.arrived;
      this.onData();
    }
  }

  /** Where a view that reached the end of the run goes when the run is longer; null where it did not. */
  private follow(before: Run, now: Run): { from: number; to: number } | null {
    const [old, next] = [homeOf(before), homeOf(now)];
    if (this.to < old[1] * 0.999) return null;
    return { from: this.from <= old[0] ? next[0] : this.from + next[1] - old[1], to: next[1] };
  }
  /** Shows a newer state of a recording: the time in view stays, or goes on with the end of the run. */
  private adopt(next: ViewDocument, before: Run, now: Run): void {
    this.asOf = new Date();
    const follows = this.follow(before, now);
    if (this.source.generation !== undefined) this.source.generation = now.generation ?? 0;
    this.document = next;
    const same = (a: Track, b: Track | undefined): boolean =>
      b !== undefined && a.id === b.id && a.parent === b.parent && a.kind === b.kind && a.name === b.name;
    if (
      before.t0 !== now.t0 ||
      before.tracks.length !== now.tracks.length ||
      !now.tracks.every((track, i) => same(track, before.tracks[i]))
    ) {
      const old = this.tree;
      const pathIn = (tree: TrackTree, id: number): string =>
        [...tree.ancestors(id), id].map((each) => tree.byId.get(each)?.name ?? '').join('\n');
      const known = new Map([...old.byId.keys()].map((id) => [pathIn(old, id), this.closed.has(id)]));
      this.tree = new TrackTree(now);
      const first = this.tree.closedAtFirst();
      this.closed = new Set(
        [...this.tree.byId.keys()].filter((id) => known.get(pathIn(this.tree, id)) ?? first.has(id)),
      );
      this.tiles = new TileStore(this.source, this.run, now.length, this.dataArrived);
    } else {
      this.tree = new TrackTree(now);
      this.tiles.renew(now.length);
    }
    if (before.naming !== now.naming) this.names = new NameStore(this.source, this.run, this.dataArrived);
    if (follows !== null) {
      if (this.view === 'timeline') this.goal = follows;
      else [this.from, this.to] = [follows.from, follows.to];
    }
    this.evidence = null;
    void this.loadOverview();
    this.dataArrived();
  }

  // ---- the address

  // What Back undoes: the view, and what is chosen in it. Panning, zooming and typing change the entry they are in.
  get view(): ViewName {
    return this.viewNow;
  }
  set view(view: ViewName) {
    if (view !== this.viewNow) this.leave();
    this.viewNow = view;
  }
  get kernel(): { name: number; text: string } | null {
    return this.kernelNow;
  }
  set kernel(kernel: { name: number; text: string } | null) {
    // A kernel that gets its number stays the same one.
    if (kernel?.text !== this.kernelNow?.text) this.leave();
    this.kernelNow = kernel;
  }
  get rank(): number | null {
    return this.rankNow;
  }
  set rank(rank: number | null) {
    if (rank !== this.rankNow) this.leave();
    this.rankNow = rank;
  }
  get jobStep(): number | null {
    return this.stepNow;
  }
  set jobStep(step: number | null) {
    if (step !== this.stepNow) this.leave();
    this.stepNow = step;
  }
  get collective(): number | null {
    return this.collectiveNow;
  }
  set collective(index: number | null) {
    if (index !== this.collectiveNow) this.leave();
    this.collectiveNow = index;
  }

  /** Called before a jump: what is shown now stays as an entry of the history, and what follows becomes the next. */
  private leave(): void {
    if (this.beside || this.reading || this.jumped || this.current === null) return;
    clearTimeout(this.hashTimer);
    history.replaceState(null, '', `#${this.hash()}`);
    this.jumped = true;
  }
  private readHash(): void {
    clearTimeout(this.hashTimer);
    this.reading = true;
    this.jumped = false;
    this.readAddress();
    this.reading = false;
  }
  private readAddress(): void {
    const hash = new URLSearchParams(location.hash.slice(1));
    const number = (key: string): number | null => {
      const text = hash.get(key);
      return text === null || text === '' || !Number.isFinite(Number(text)) ? null : Number(text);
    };
    const run = number('run');
    if (run !== null && run !== this.run && this.document?.runs.some((each) => each.id === run)) this.open(run);
    const view = hash.get('view');
    this.view = kViews.find((each) => each === view) ?? firstViewOf(this.document);
    const [asked, end] = [number('from'), number('to')];
    const [from, to] = asked !== null && end !== null && end > asked ? [asked, end] : this.home;
    const scroll = Math.max(0, number('scroll') ?? 0);
    const moves = from !== this.from || to !== this.to || scroll !== this.scroll;
    this.goal = moves && this.view === 'timeline' ? { from, to, scroll } : null;
    [this.from, this.to, this.scroll] = [from, to, scroll];
    this.choice.read(hash);
    const tracks = hash.get('tracks');
    this.closed =
      tracks === null
        ? this.tree.closedAtFirst()
        : new Set(
            tracks
              .split(',')
              .filter((each) => each !== '')
              .map(Number),
          );
    const [a, b] = (hash.get('span') ?? '').split('-').map(Number);
    if (hash.has('span') && b > a) this.choose([a, b], true);
    else if (this.span !== null) this.choose(null, true);
    const selected = hash.get('sel');
    if (selected !== this.selected) {
      if (selected === null || !/^\d+$/.test(selected)) this.select(null);
      else this.select(selected, false);
    }
    this.rank = number('rank');
    this.heat = hash.get('heat') ?? 'late';
    this.jobStep = number('step');
    this.collective = number('collective');
    const kernel = number('kernel');
    const named = hash.get('kernel-name');
    if (kernel !== null) {
      if (kernel !== this.kernel?.name) void this.chooseKernelByNumber(kernel);
    } else if (named === null) this.kernel = null;
    else if (named !== this.kernel?.text) this.kernel = { name: -1, text: named };
    this.words = Object.fromEntries(kWords.flatMap((key) => (hash.get(key) ? [[key, hash.get(key) ?? '']] : [])));
    this.matchCase = hash.get('case') === '1';
    const query = hash.get('q') ?? '';
    if (query !== this.query) this.search(query, false);
  }
  /** Writes the state into the address, at most some times a second. */
  remember(): void {
    clearTimeout(this.hashTimer);
    if (this.current === null) return; // what it asks for has not been read
    if (this.jumped) {
      this.jumped = false;
      history.pushState(null, '', `#${this.hash()}`);
      return;
    }
    this.hashTimer = setTimeout(() => history.replaceState(null, '', `#${this.hash()}`), 150);
  }
  hash(): string {
    const parts = [`view=${this.view}`];
    if ((this.document?.runs.length ?? 0) > 1) parts.push(`run=${this.run}`);
    if (this.away) parts.push(`from=${Number(this.from.toFixed(3))}`, `to=${Number(this.to.toFixed(3))}`);
    if (this.scroll > 0) parts.push(`scroll=${Math.round(this.scroll)}`);
    if (this.span !== null) parts.push(`span=${Math.round(this.span[0])}-${Math.round(this.span[1])}`);
    if (this.selected !== null) parts.push(`sel=${this.selected}`);
    if (this.kernel !== null)
      parts.push(
        this.kernel.name >= 0
          ? `kernel=${this.kernel.name}`
          : `kernel-name=${encodeURIComponent(this.kernel.text.slice(0, 2000))}`,
      );
    if (this.rank !== null) parts.push(`rank=${this.rank}`);
    if (this.heat !== 'late') parts.push(`heat=${this.heat}`);
    if (this.jobStep !== null) parts.push(`step=${this.jobStep}`);
    if (this.collective !== null) parts.push(`collective=${this.collective}`);
    const first = this.tree.closedAtFirst();
    if (first.size !== this.closed.size || [...this.closed].some((id) => !first.has(id)))
      parts.push(`tracks=${[...this.closed].join(',')}`);
    parts.push(...this.choice.parts());
    for (const [key, word] of Object.entries(this.words))
      if (word !== '') parts.push(`${key}=${encodeURIComponent(word)}`);
    if (this.query !== '') parts.push(`q=${encodeURIComponent(this.query)}`);
    if (this.matchCase) parts.push('case=1');
    return parts.join('&');
  }

  /** Keeps something of a view in the address; '' = nothing. */
  say(key: string, word: string): void {
    if ((this.words[key] ?? '') !== word) this.words = { ...this.words, [key]: word };
  }

  // ---- what is selected

  toggle(track: number): void {
    const closed = new Set(this.closed);
    if (!closed.delete(track)) closed.add(track);
    this.closed = closed;
  }
  closeAll(close: boolean): void {
    this.closed = close
      ? new Set([...this.tree.children.keys()].filter((id) => id !== -1 && this.tree.byId.get(id)?.parent !== -1))
      : new Set();
  }

  /** Shows this stretch of time in the timeline. */
  show(from: number, to: number, track?: number, lane?: number): void {
    if (this.view !== 'timeline' || from !== this.from || to !== this.to) this.leave();
    if (track !== undefined) this.reveal(track);
    this.goal = { from, to, track, lane };
    this.view = 'timeline';
  }
  /**
   * The same, with all of a rank open and its rows in view. `mark`: from when to when the rank was in the collective, whose kernel
   * is selected; null = none.
   */
  showRank(rank: number, from: number, to: number, mark: [number, number] | null = null): void {
    this.rank = rank;
    const tracks = (this.current?.tracks ?? []).filter((each) => each.rank === rank);
    const open = new Set(this.closed);
    for (const each of tracks) open.delete(each.id);
    if (open.size !== this.closed.size) this.closed = open;
    this.select(null);
    this.show(from, to, tracks[0]?.id, 0);
    if (mark === null) return;
    const goal = this.goal;
    void slicesAt(this.source, this.run, tracks, mark).then((found) => {
      // Kernels first: a range around one may begin and end with it.
      const place = found.find((each) => BigInt(each.row) >> 48n === 0n) ?? found[0];
      if (place === undefined || this.rank !== rank || this.selected !== null) return;
      this.select(place.row);
      this.reveal(place.track);
      const moved = this.goal !== goal && this.goal !== null;
      if (!moved) this.goal = { from, to, track: place.track, lane: place.lane };
    });
  }
  private reveal(track: number): void {
    this.choice.admit([track, ...this.tree.ancestors(track)], this.tree.byId.get(track)?.name ?? '');
    const closed = new Set(this.closed);
    let changed = false;
    for (const id of this.tree.ancestors(track)) changed = closed.delete(id) || changed;
    if (changed) this.closed = closed;
  }

  /** Brings a slice into view, wide enough to be seen, and selects it. */
  goTo(place: Place): void {
    const span = this.to - this.from;
    const least = Math.max(place.duration, 1);
    const stop = place.start + Math.max(place.duration, 0);
    let [from, to] = [this.from, this.to];
    if (least < span / 60 || least > span * 0.9) {
      const wide = Math.max(least * 12, 200);
      [from, to] = [
        place.start + Math.max(place.duration, 0) / 2 - wide / 2,
        place.start + Math.max(place.duration, 0) / 2 + wide / 2,
      ];
    } else if (place.start < from + span * 0.02 || stop > to - span * 0.02) {
      from = (place.start + stop) / 2 - span / 2;
      to = from + span;
    }
    this.show(from, to, place.track, place.lane);
    this.select(place.row);
  }

  select(row: string | null, _show = true): void {
    if (row === kNoRow) return; // drawn from the state before; the next tile has it
    this.selected = row;
    if (row === null) {
      this.slice = null;
      return;
    }
    this.source.slice(this.run, row).then(
      (slice) => {
        if (this.selected === row) this.slice = slice;
      },
      (error: unknown) => {
        if (this.selected === row) {
          this.slice = null;
          this.tablesFault = sentence(error);
        }
      },
    );
  }

  /** Chooses a span of time; its tables follow when `done`. */
  choose(span: [number, number] | null, done: boolean): void {
    this.span = span === null || span[1] - span[0] < 1 ? null : span;
    clearTimeout(this.spanTimer);
    this.spanAbort.abort();
    if (this.span === null) {
      this.tables = null;
      this.tablesBusy = false;
      return;
    }
    this.spanTimer = setTimeout(() => void this.loadTables(), done ? 0 : 120);
  }
  private async loadTables(): Promise<void> {
    if (this.span === null) return;
    const abort = (this.spanAbort = new AbortController());
    this.tablesBusy = true;
    try {
      const tables = await this.source.span(this.run, this.span[0], this.span[1], abort.signal);
      if (abort.signal.aborted) return;
      this.tables = tables;
      this.tablesFault = '';
    } catch (error) {
      if (abort.signal.aborted) return;
      this.tables = null;
      this.tablesFault = sentence(error);
    }
    this.tablesBusy = false;
  }

  chooseKernel(kernel: { name: number; text: string } | null): void {
    this.kernel = kernel;
  }
  /** The kernel of this name, as counters have it, in this run; -1 where it ran no such kernel. */
  async chooseKernelNamed(text: string): Promise<void> {
    const run = this.run;
    this.kernel = { name: -1, text };
    const wanted = plainName(text);
    const exact = `^${wanted.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}( \\[clone \\.kd\\]| \\(\\.kd\\)|\\.kd)?$`;
    const same = (each: FoundName): boolean =>
      (each.kind === 'kernel' || each.kind === 'dispatch') && plainName(each.text) === wanted;
    // Not found, or a name that no search takes: it stays without a number.
    const found = await this.source.search(run, exact, true, null).catch(() => null);
    const name = found?.names.find(same);
    if (name !== undefined && run === this.run && this.kernel?.text === text)
      this.kernelNow = { name: name.name, text: name.text };
  }
  /** Shows another run; the kernel chosen stays so where that one has it. */
  async change(run: number): Promise<void> {
    const before = this.kernel;
    this.leave();
    this.open(run);
    this.say('marks', '');
    if (before === null) return;
    await this.chooseKernelNamed(before.text);
    const now: { name: number; text: string } | null = this.kernel;
    if (
      this.run === run &&
      now !== null &&
      now.name < 0 &&
      now.text === before.text &&
      (this.current?.events ?? 0) > 0 &&
      !this.has('analysis')
    )
      this.kernelNow = null;
  }
  private async chooseKernelByNumber(name: number): Promise<void> {
    const { names } = await this.source.names(this.run, [name]);
    this.kernelNow = { name, text: names[0] ?? '' };
  }

  // ---- search

  search(query: string, soon = true): void {
    // What is typed changes one entry of the history; the first letter makes it.
    if (query !== '' && this.query === '') this.leave();
    this.query = query;
    clearTimeout(this.searchTimer);
    this.searchAbort.abort();
    this.searchFault = '';
    if (query === '') {
      this.found = null;
      this.hit = -1;
      this.searching = false;
      return;
    }
    this.searching = true;
    this.searchTimer = setTimeout(() => void this.runSearch(), soon ? 90 : 0);
  }
  private async runSearch(): Promise<void> {
    const abort = (this.searchAbort = new AbortController());
    try {
      const result = await this.source.search(this.run, this.query, this.matchCase, null, abort.signal);
      if (abort.signal.aborted) return;
      this.found = result;
      this.hit = -1;
    } catch (error) {
      if (abort.signal.aborted) return;
      this.found = null;
      this.searchFault = sentence(error);
    }
    this.searching = false;
  }
  /** How many slices the search found in all. */
  get hitCount(): number {
    return this.found === null
      ? 0
      : this.found.more === null
        ? this.found.hits.length
        : Math.max(
            this.found.hits.length,
            this.found.names.reduce((sum, each) => sum + each.count, 0),
          );
  }
  /** To the next hit (or the one before); the first is the first one in view. */
  async step(by: 1 | -1): Promise<void> {
    const found = this.found;
    if (found === null || found.hits.length === 0) return;
    let next = this.hit + by;
    if (this.hit < 0) {
      const inView = found.hits.findIndex((hit) => hit.start >= this.from);
      next = by > 0 ? Math.max(0, inView) : inView < 0 ? found.hits.length - 1 : inView - 1;
    }
    if (next >= found.hits.length && found.more !== null) {
      const abort = this.searchAbort;
      let more: SearchResult;
      try {
        more = await this.source.search(this.run, this.query, this.matchCase, found.more, abort.signal);
      } catch (error) {
        if (!abort.signal.aborted) this.searchFault = sentence(error);
        return;
      }
      if (abort.signal.aborted) return;
      this.found = { names: found.names, hits: [...found.hits, ...more.hits], more: more.more };
    }
    const hits = this.found?.hits ?? [];
    if (hits.length === 0) return;
    const first = this.hit < 0;
    this.hit = (next + hits.length) % hits.length;
    // One entry of the history for all that the search goes through.
    const jumped = this.jumped;
    if (!first && this.view === 'timeline') this.jumped = true;
    this.goTo(hits[this.hit]);
    if (!first && this.view === 'timeline') this.jumped = jumped;
  }
}
