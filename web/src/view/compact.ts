// Names of kernels in the room that a column has: C++ signatures in fewer words, as the terminal's tables show them
// (src/report/shorten.h). The whole name stands in tooltips and details.

const kWord = /[A-Za-z0-9_$]/;
const kAnonymous = '(anonymous namespace)::';

// Where the parameter list begins that ends the signature, or -1.
function parametersOf(name: string): number {
  const rest = name.replace(/( const| volatile|&| noexcept)+$/, '');
  if (!rest.endsWith(')') || rest.endsWith('(anonymous namespace)')) return -1;
  let depth = 0;
  for (let i = rest.length - 1; i >= 0; --i) {
    if (')}]'.includes(rest[i])) ++depth;
    if ('({['.includes(rest[i])) --depth;
    if (depth < 0) return -1;
    if (depth === 0) return i > 0 && rest[i] === '(' ? i : -1;
  }
  return -1;
}

// Without what stands before a "::": namespaces, classes, and the anonymous namespace.
function unqualified(name: string): string {
  let out = '';
  for (let i = 0; i < name.length;) {
    if (name.startsWith(kAnonymous, i)) {
      i += kAnonymous.length;
    } else if (name.startsWith('::', i)) {
      let end = out.length;
      while (end > 0 && kWord.test(out[end - 1])) --end;
      out = out.slice(0, end);
      if (out.endsWith('>') || out.endsWith('}')) out += '::';
      i += 2;
    } else {
      out += name[i++];
    }
  }
  return out;
}

/** A C++ signature without return type, namespaces and parameters; any other text unchanged. Of a very long one the beginning. */
export function compactName(name: string): string {
  const whole = name.length > 4000 ? name.slice(0, 4000) : name;
  const rest = whole.startsWith('void ') ? whole.slice(5) : whole;
  if (rest === whole && !rest.includes('<') && !rest.includes('::')) return name;
  const open = parametersOf(rest);
  return unqualified(open < 0 ? rest : rest.slice(0, open)) || name;
}

/** The same for a list: names that differ stay different. */
export function compactNames(names: string[]): string[] {
  const short = names.map(compactName);
  const of = new Map<string, Set<string>>();
  names.forEach((name, i) => of.set(short[i], (of.get(short[i]) ?? new Set()).add(name)));
  return names.map((name, i) => (of.get(short[i])!.size > 1 ? name : short[i]));
}

/**
 * Names in the room of a column, `room` letters: of names that begin alike the part that tells them apart stays, and the middle
 * before it is left out.
 */
export function fitNames(names: string[], room: number): string[] {
  const sorted = [...new Set(names)].sort();
  // Of sorted names the neighbours share most.
  const shared = new Map<string, number>();
  const common = (a: string, b: string): number => {
    let i = 0;
    while (i < a.length && i < b.length && a[i] === b[i]) ++i;
    return i;
  };
  sorted.forEach((name, i) => {
    const before = i > 0 ? common(name, sorted[i - 1]) : 0;
    const after = i + 1 < sorted.length ? common(name, sorted[i + 1]) : 0;
    shared.set(name, Math.max(before, after));
  });
  return names.map((name) => {
    const alike = shared.get(name) ?? 0;
    if (name.length <= room || alike < room * 0.7) return name;
    const head = Math.max(4, Math.ceil(room * 0.4));
    const rest = Math.max(head, Math.min(alike - 3, name.length - (room - head - 1)));
    return `${name.slice(0, head)}…${name.slice(rest)}`;
  });
}
