// Asks for a moment each second, and keeps what the page shows: the last one, the one before it or the marked one, and the pace of
// the last minutes.

import { change, comparable, type Change, type Moment } from './moment';

const KEPT = 300;

export class Watched {
  now: Moment | null = $state.raw(null);
  since: Moment | null = $state.raw(null);
  change: Change | null = $state.raw(null);
  /** Launches a second, one a second. */
  launches: number[] = $state.raw([]);
  frozen = $state(false);
  marked = $state(false);
  /** When the last answer came. */
  at = $state.raw(new Date());
  /** Why there is none any more. */
  fault = $state('');
  private newest: Moment | null = null;
  private ended = false;

  constructor(
    private readonly token: string,
    private readonly every = 1000,
  ) {}

  async follow(): Promise<void> {
    while (!this.ended) {
      const began = performance.now();
      await this.ask();
      await new Promise((done) => setTimeout(done, Math.max(100, this.every - (performance.now() - began))));
    }
  }
  stop(): void {
    this.ended = true;
  }

  private async ask(): Promise<void> {
    let response: Response;
    try {
      response = await fetch('moment', { headers: { 'X-Tacho-Token': this.token }, cache: 'no-store' });
    } catch {
      this.fault = 'The watch has ended, or tacho does not answer.';
      return;
    }
    if (!response.ok) {
      this.fault = `tacho answered with status ${response.status}; open the address that it printed.`;
      return;
    }
    try {
      this.show((await response.json()) as Moment);
    } catch {
      this.fault = 'The watch ended while it answered.';
      return;
    }
    this.fault = '';
  }

  /** A new moment. */
  show(moment: Moment): void {
    const before = this.newest;
    this.newest = moment;
    if (comparable(before, moment)) {
      const pace = change(before, moment).pace;
      if (pace !== null) this.launches = [...this.launches, pace.launches].slice(-KEPT);
    }
    if (this.frozen) return;
    this.at = new Date();
    if (this.marked && !comparable(this.since, moment)) this.marked = false;
    if (!this.marked) this.since = before;
    this.now = moment;
    this.change = change(this.since, moment);
  }
  freeze(): void {
    this.frozen = !this.frozen;
  }
  /** "Now" begins at this moment, or again at the one before. */
  mark(): void {
    this.marked = !this.marked;
    if (this.marked) this.since = this.now;
  }
}
