// The choices of a flame graph as one word in the address: "gpu.bottom-up.functions.interpreter.threads"; what is missing is as at first.

import type { Detail, Metric, Order, Settings } from '../flame/tree';

/** `metric` and `first`: what the width is, and what is told apart, unless the word says otherwise. */
export function flameSettings(word: string, metric: Metric, first: Detail = 'lines'): Settings {
  const words = new Set(word.split('.'));
  const one = <T extends string>(list: readonly T[], otherwise: T): T =>
    list.find((each) => words.has(each)) ?? otherwise;
  return {
    metric: one<Metric>(['host', 'gpu', 'both'], metric),
    order: one<Order>(['top-down', 'bottom-up'], 'top-down'),
    detail: one<Detail>(['lines', 'functions', 'operators'], first),
    interpreter: words.has('interpreter'),
  };
}
export function flameWord(settings: Settings, threads: boolean, first: Detail = 'lines'): string {
  return [
    settings.metric,
    settings.order === 'top-down' ? '' : settings.order,
    settings.detail === first ? '' : settings.detail,
    settings.interpreter ? 'interpreter' : '',
    threads ? 'threads' : '',
  ]
    .filter(Boolean)
    .join('.');
}
