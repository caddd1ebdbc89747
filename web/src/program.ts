// Evaluation of the compiled formulas over any choice of dispatches. Step by step what src/metric/formula/program.cpp does, in the
// same order of operations, so that the numbers are the same to the last bit.

import { numeric, type Cell, type Page } from './document';

type Column = Float64Array;
/** The value of a node: one number a dispatch, one number, or (CONCAT) a text. */
type Value = Column | number | string;

const kMissing = 0;

function nearbyInt(x: number): number {
  const below = Math.floor(x);
  const part = x - below;
  if (part < 0.5) return below;
  if (part > 0.5) return below + 1;
  return below % 2 === 0 ? below : below + 1;
}

function roundTo(x: number, digits: number): number {
  if (!Number.isFinite(x)) return x;
  if (digits === 0) return nearbyInt(x);
  const scale = Math.pow(10, digits);
  const scaled = x * scale;
  return Number.isFinite(scaled) ? nearbyInt(scaled) / scale : x;
}

function moduloOfPython(a: number, b: number): number {
  if (b === 0) return NaN;
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
}

/** Sum and count of the numbers, in blocks of 256 as the program of the command line adds. */
function totals(values: Column): { sum: number; count: number } {
  let sum = 0;
  let count = 0;
  for (let from = 0; from < values.length; from += 256) {
    let part = 0;
    const to = Math.min(values.length, from + 256);
    for (let i = from; i < to; ++i) {
      if (!Number.isNaN(values[i])) {
        part += values[i];
        ++count;
      }
    }
    sum += part;
  }
  return { sum, count };
}

/** Linear between the closest ranks. */
export function quantile(values: Column, q: number): number {
  return quantileOf(values.filter((x) => !Number.isNaN(x)).sort(), q);
}

/** The same of numbers in ascending order. */
function quantileOf(numbers: Column, q: number): number {
  if (numbers.length === 0 || Number.isNaN(q)) return NaN;
  const at = Math.min(Math.max(q, 0), 1) * (numbers.length - 1);
  const below = Math.floor(at);
  const part = at - below;
  const low = numbers[below];
  if (part === 0) return low;
  const high = numbers[below + 1];
  return low === high ? low : low + (high - low) * part;
}

function textOf(value: Value): string | null {
  if (typeof value === 'string') return value;
  if (typeof value !== 'number' || Number.isNaN(value)) return null;
  return value === Math.trunc(value) && Math.abs(value) < 1e15 ? value.toFixed(0) : String(value);
}

const kBinary: Record<string, (x: number, y: number) => number> = {
  add: (x, y) => x + y,
  subtract: (x, y) => x - y,
  multiply: (x, y) => x * y,
  divide: (x, y) => x / y,
  modulo: moduloOfPython,
  floor: (x, y) => Math.floor(x / y),
  power: (x, y) => Math.pow(x, y),
  less: (x, y) => (x < y ? 1 : 0),
  less_eq: (x, y) => (x <= y ? 1 : 0),
  greater: (x, y) => (x > y ? 1 : 0),
  greater_eq: (x, y) => (x >= y ? 1 : 0),
  equal: (x, y) => (x === y ? 1 : 0),
  not_equal: (x, y) => (x !== y ? 1 : 0),
  and: (x, y) => (x !== 0 && y !== 0 ? 1 : 0),
  or: (x, y) => (x !== 0 || y !== 0 ? 1 : 0),
  smaller: (x, y) => (Number.isNaN(x) || Number.isNaN(y) ? NaN : y < x ? y : x),
  larger: (x, y) => (Number.isNaN(x) || Number.isNaN(y) ? NaN : y > x ? y : x),
  only_where: (x, y) => (Number.isNaN(y) ? NaN : x),
  round: roundTo,
};

const kUnary: Record<string, (x: number) => number> = {
  negate: (x) => -x,
  not: (x) => (x === 0 ? 1 : 0),
  to_int: (x) => (Number.isFinite(x) ? Math.trunc(x) : NaN),
};

const kReductions: Record<string, (values: Column) => number> = {
  avg: (values) => {
    const { sum, count } = totals(values);
    return count === 0 ? NaN : sum / count;
  },
  sum: (values) => {
    const { sum, count } = totals(values);
    return count === 0 ? NaN : sum;
  },
  min: (values) => {
    let best = NaN;
    for (let i = 0; i < values.length; ++i) if (!Number.isNaN(values[i]) && !(best <= values[i])) best = values[i];
    return best;
  },
  max: (values) => {
    let best = NaN;
    for (let i = 0; i < values.length; ++i) if (!Number.isNaN(values[i]) && !(best >= values[i])) best = values[i];
    return best;
  },
  median: (values) => quantile(values, 0.5),
  std: (values) => {
    const { sum, count } = totals(values);
    if (count < 2) return NaN;
    const mean = sum / count;
    let squares = 0;
    for (const x of values) if (!Number.isNaN(x)) squares += (x - mean) * (x - mean);
    return Math.sqrt(squares / (count - 1));
  },
};

const kStudent = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/**
 * Half of the 95 % confidence interval of the values' sum / `total` (by default their count: of the mean); `launch`
 * says of which launch each value is a repeat.
 */
function errorOfSum(values: Column, launch: Uint32Array, total?: number): number {
  const groups = launch.reduce((most, each) => Math.max(most, each), 0) + 1;
  const counts = new Float64Array(groups);
  const means = new Float64Array(groups);
  const squares = new Float64Array(groups);
  for (let i = 0; i < values.length; ++i) {
    if (Number.isNaN(values[i])) continue;
    counts[launch[i]] += 1;
    means[launch[i]] += values[i];
  }
  for (let g = 0; g < groups; ++g) if (counts[g] > 0) means[g] /= counts[g];
  for (let i = 0; i < values.length; ++i) {
    const off = values[i] - means[launch[i]];
    if (!Number.isNaN(values[i])) squares[launch[i]] += off * off;
  }
  let count = 0;
  let variance = 0;
  let freedom = 0;
  for (let g = 0; g < groups; ++g) {
    if (counts[g] === 0) continue;
    if (counts[g] === 1) return NaN;
    count += counts[g];
    freedom += counts[g] - 1;
    variance += (counts[g] * squares[g]) / (counts[g] - 1);
  }
  const whole = Math.abs(total ?? count);
  if (freedom === 0 || whole === 0) return NaN;
  const t = freedom <= kStudent.length ? kStudent[freedom - 1] : 1.96 + 2.4 / freedom;
  return (t * Math.sqrt(variance)) / whole;
}

/** The same of sum(above) / sum(below): the spread is that of above - ratio * below. */
function errorOfTotals(above: Column, below: Column, launch: Uint32Array): number {
  const total = kReductions.sum(below);
  const ratio = kReductions.sum(above) / total;
  return errorOfSum(
    above.map((value, i) => value - ratio * below[i]),
    launch,
    total,
  );
}

/** The program of one run. Columns are read once; each Evaluation computes what it is asked for. */
export class Program {
  readonly #operations: string[];
  readonly #nodes: Int32Array;
  readonly #lists: number[];
  readonly #constants: number[];
  readonly #inputs: Column[];
  readonly #repeats: number[];

  constructor(page: Page) {
    this.#repeats = page.dispatches?.repeats ?? [];
    this.#operations = page.operations ?? [];
    this.#nodes = Int32Array.from(page.nodes ?? []);
    this.#lists = page.lists ?? [];
    this.#constants = (page.constants ?? []).map(numeric);
    this.#inputs = (page.inputs ?? []).map((values) => Float64Array.from(values, numeric));
  }

  /** Over the given dispatches (ascending). Nodes are computed when first asked for. */
  over(rows: Uint32Array): Evaluation {
    return new Evaluation(
      this.#operations,
      this.#nodes,
      this.#lists,
      this.#constants,
      this.#inputs,
      this.#repeats,
      rows,
    );
  }
}

export class Evaluation {
  readonly #done: (Value | undefined)[];
  readonly #launches: Uint32Array;
  #sorted: { node: number; numbers: Column } | null = null;

  constructor(
    private readonly operations: string[],
    private readonly nodes: Int32Array,
    private readonly lists: number[],
    private readonly constants: number[],
    private readonly inputs: Column[],
    repeats: number[],
    private readonly rows: Uint32Array,
  ) {
    this.#launches = rows.map((row) => repeats[row] ?? 0);
    this.#done = new Array<Value | undefined>(nodes.length / 4);
  }

  /** What a table shows: a number, a text, or null where there is none. */
  cell(node: number): Cell {
    const value = this.#value(node);
    if (typeof value === 'string') return value;
    return typeof value === 'number' && !Number.isNaN(value) ? value : null;
  }

  /** One value a dispatch; all NaN when the run does not have it. */
  column(node: number): Column {
    const value = this.#value(node);
    if (value instanceof Float64Array) return value;
    return new Float64Array(this.rows.length).fill(typeof value === 'number' ? value : NaN);
  }

  // The numbers of a column in ascending order; a column is often asked for several quantiles after each other.
  #ascending(node: number): Column {
    if (this.#sorted?.node !== node) {
      const values = this.#done[node] as Column;
      this.#sorted = { node, numbers: values.filter((x) => !Number.isNaN(x)).sort() };
    }
    return this.#sorted.numbers;
  }

  #value(wanted: number): Value {
    // An explicit stack: chains of operations can be long.
    const stack = [wanted];
    while (stack.length > 0) {
      const node = stack[stack.length - 1];
      if (this.#done[node] !== undefined) {
        stack.pop();
        continue;
      }
      const before = stack.length;
      for (const operand of this.#operands(node)) if (this.#done[operand] === undefined) stack.push(operand);
      if (stack.length > before) continue;
      this.#done[node] = this.#compute(node);
      stack.pop();
    }
    return this.#done[wanted] as Value;
  }

  #operands(node: number): number[] {
    const [op, a, b, c] = this.nodes.subarray(node * 4, node * 4 + 4);
    const name = this.operations[op];
    if (name === 'missing' || name === 'constant' || name === 'column') return [];
    if (name === 'sum_list') return this.lists.slice(a, a + b);
    if (name === 'select') return [a, b, c];
    return name in kBinary || name === 'concat' || name === 'error_of_totals' ? [a, b] : [a];
  }

  #compute(node: number): Value {
    const [op, a, b, c] = this.nodes.subarray(node * 4, node * 4 + 4);
    const name = this.operations[op];
    const at = (operand: number) => this.#done[operand] as Value;
    const reader = (operand: number): ((row: number) => number) => {
      const value = at(operand);
      if (value instanceof Float64Array) return (row) => value[row];
      const number = typeof value === 'number' ? value : NaN;
      return () => number;
    };
    const each = (operands: number[], f: (row: number) => number): Value => {
      if (!operands.some((operand) => at(operand) instanceof Float64Array)) return f(0);
      const out = new Float64Array(this.rows.length);
      for (let row = 0; row < out.length; ++row) out[row] = f(row);
      return out;
    };
    if (name === 'missing' || node === kMissing) return NaN;
    if (name === 'constant') return this.constants[a];
    if (name === 'column') {
      const input = this.inputs[a];
      const out = new Float64Array(this.rows.length);
      for (let i = 0; i < out.length; ++i) out[i] = input[this.rows[i]];
      return out;
    }
    if (name === 'add' || name === 'subtract' || name === 'multiply' || name === 'divide') {
      // What most nodes are, without a call for every value.
      const x = at(a);
      const y = at(b);
      if (x instanceof Float64Array || y instanceof Float64Array) {
        const out = new Float64Array(this.rows.length);
        const left = x instanceof Float64Array ? x : out.slice().fill(typeof x === 'number' ? x : NaN);
        const right = y instanceof Float64Array ? y : out.slice().fill(typeof y === 'number' ? y : NaN);
        if (name === 'add') for (let i = 0; i < out.length; ++i) out[i] = left[i] + right[i];
        else if (name === 'subtract') for (let i = 0; i < out.length; ++i) out[i] = left[i] - right[i];
        else if (name === 'multiply') for (let i = 0; i < out.length; ++i) out[i] = left[i] * right[i];
        else for (let i = 0; i < out.length; ++i) out[i] = left[i] / right[i];
        return out;
      }
    }
    if (name in kBinary) {
      const f = kBinary[name];
      const x = reader(a);
      const y = reader(b);
      return each([a, b], (row) => f(x(row), y(row)));
    }
    if (name in kUnary) {
      const f = kUnary[name];
      const x = reader(a);
      return each([a], (row) => f(x(row)));
    }
    if (name === 'median' && at(a) instanceof Float64Array) return quantileOf(this.#ascending(a), 0.5);
    if (name in kReductions) {
      const value = at(a);
      return value instanceof Float64Array ? kReductions[name](value) : value;
    }
    if (name === 'error') {
      const value = at(a);
      return value instanceof Float64Array ? errorOfSum(value, this.#launches) : NaN;
    }
    if (name === 'error_of_totals') {
      const above = at(a);
      const below = at(b);
      return above instanceof Float64Array && below instanceof Float64Array
        ? errorOfTotals(above, below, this.#launches)
        : NaN;
    }
    if (name === 'quantile') {
      return at(a) instanceof Float64Array ? quantileOf(this.#ascending(a), this.constants[b]) : at(a);
    }
    if (name === 'select') {
      const x = reader(a);
      const otherwise = reader(b);
      const condition = reader(c);
      return each([a, b, c], (row) => (condition(row) !== 0 ? x(row) : otherwise(row)));
    }
    if (name === 'sum_list') {
      const out = new Float64Array(this.rows.length);
      for (const operand of this.lists.slice(a, a + b)) {
        const x = reader(operand);
        const values = at(operand);
        if (values instanceof Float64Array) for (let row = 0; row < out.length; ++row) out[row] += values[row];
        else for (let row = 0; row < out.length; ++row) out[row] += x(row);
      }
      return out;
    }
    if (name === 'concat') {
      const left = textOf(at(a));
      const right = textOf(at(b));
      return left !== null && right !== null ? left + right : NaN;
    }
    throw new Error(`unknown operation ${name}`);
  }
}
