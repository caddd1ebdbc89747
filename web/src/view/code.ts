// What /api/operators and /api/code tell: operators, modules, lines and functions with their times, and the sampled threads.
// All times are ns.

import type { OperatorRoofs } from './operator_roofline';
import type { App } from './state.svelte';

/** Number of the kernel's name, its time, its launches. */
export type KernelShare = [number, number, number];

export interface CodeRow {
  name: string;
  /** Of lines and functions: "train.py:31". */
  place?: string;
  /** Of operators and modules: forward, backward, optimizer, data. */
  phase?: string;
  /** A module's class; what a compiled kernel was fused of. */
  kind?: string;
  calls?: number;
  samples?: number;
  host_self: number;
  host: number;
  gpu_self: number;
  gpu: number;
  launches?: number;
  kernels?: KernelShare[];
  /** Modules of this class. */
  count?: number;
  rows?: CodeRow[];
}
export interface SampledThread {
  track: number;
  name: string;
  host: number;
  samples: number;
  /** Share of one processor in equal parts of the run. */
  busy: number[];
}
export interface Code {
  gpu: number;
  host: number;
  samples: number;
  /** Lines and functions are of the user's own code alone. */
  own: boolean;
  operators: CodeRow[];
  operators_count: number;
  modules: CodeRow[];
  modules_count: number;
  lines: CodeRow[];
  lines_count: number;
  functions: CodeRow[];
  functions_count: number;
  threads: SampledThread[];
  threads_count: number;
  /** Operators against what their device can do; null where the run has no shapes of inputs. */
  roofline?: OperatorRoofs | null;
}

export type CodeTab = 'operators' | 'modules' | 'lines' | 'functions';
export const kCodeTabs: { id: CodeTab; title: string; one: string }[] = [
  { id: 'operators', title: 'Operators', one: 'operator' },
  { id: 'modules', title: 'Modules', one: 'class of modules' },
  { id: 'lines', title: 'Lines', one: 'line' },
  { id: 'functions', title: 'Functions', one: 'function' },
];

/** The name under which the run has it; '' = it has none. */
export const codeView = (app: App): 'operators' | 'code' | '' =>
  app.has('operators') ? 'operators' : app.has('code') ? 'code' : '';

/** The run's tables; null where it has none. */
export async function codeOf(app: App): Promise<Code | null> {
  const view = codeView(app);
  return view === '' ? null : ((await app.extra(view)) as Code);
}

/** What tells rows of a table apart, short enough for the address. */
export const keyOf = (row: CodeRow): string => `${row.name} ${row.place ?? row.phase ?? ''}`.slice(0, 300);

/** A search that finds exactly this text. */
export const exactly = (text: string): string => `^${text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`;
