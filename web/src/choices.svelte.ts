// What of a report is shown: the kernels, dispatches and GPUs chosen, the normalisation and the unit of times.
import type { Run } from './document';
import { parseDispatches, type Choice, type Model } from './model';

export class Choices {
  /** Names; null: all. */
  kernels: ReadonlySet<string> | null = $state.raw(null);
  /** As behind -d. */
  dispatchText = $state('');
  /** null: all. */
  gpus: ReadonlySet<number> | null = $state.raw(null);
  normalisation = $state('');
  timeUnit = $state('');
  readonly #all: number[];

  /** As the command line chose of the first run. */
  constructor(run: Run, model: Model) {
    const { chosen, kernel_names } = model.page;
    this.#all = model.gpus;
    this.kernels = chosen.kernels === null ? null : new Set(chosen.kernels.map((kernel) => kernel_names[kernel]));
    this.dispatchText = chosen.dispatches.join(' ');
    this.gpus = chosen.gpus.length === 0 ? null : new Set(chosen.gpus.map(Number));
    this.normalisation = run.normal_unit;
    this.timeUnit = run.time_unit;
  }

  /** What is wrong with the text of dispatches; empty when nothing is. */
  readonly dispatchError = $derived.by(() => {
    const ranges = parseDispatches(this.dispatchText);
    return typeof ranges === 'string' ? ranges : '';
  });
  readonly choice: Choice = $derived({
    kernels: this.kernels,
    dispatches: this.dispatchError === '' ? this.dispatchText : '',
    gpus: this.gpus,
    normalisation: this.normalisation,
    timeUnit: this.timeUnit,
  });
  readonly filtered = $derived(this.kernels !== null || this.choice.dispatches.trim() !== '' || this.gpus !== null);

  toggleGpu(gpu: number): void {
    const next = new Set(this.gpus ?? this.#all);
    if (next.has(gpu)) next.delete(gpu);
    else next.add(gpu);
    this.gpus = next.size === this.#all.length ? null : next;
  }
}
