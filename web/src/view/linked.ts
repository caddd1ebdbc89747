// Names in sentences of tacho: kernels, ranks, lines of code and commands that a view of the page shows, as parts to be linked.

import { compactName } from './compact';

export type Part =
  | { what: 'text'; text: string }
  | { what: 'kernel'; text: string; kernel: { name: number; text: string } }
  | { what: 'rank'; text: string; rank: number }
  | { what: 'line'; text: string; place: string }
  | { what: 'view'; text: string; view: 'ranks' | 'code' | 'roofline' | 'memory' };

export interface Known {
  kernels: readonly { name: number; text: string }[];
  ranks: ReadonlySet<number>;
  /** Views that the run has. */
  views: ReadonlySet<string>;
}

/** Terminals cut names in the middle: "vectorized…kernel". */
const kLeastCut = 6;

/** The parts of a sentence, in order; together they are the sentence. */
export function partsOf(sentence: string, known: Known): Part[] {
  const found: { at: number; end: number; part: Part }[] = [];
  const add = (at: number, part: Part): void => {
    found.push({ at, end: at + part.text.length, part });
  };
  // Of kernels whose names contain one another the longest counts.
  const cut = known.kernels.flatMap((kernel) =>
    [...new Set([kernel.text, compactName(kernel.text)])].map((text) => ({ text, kernel })),
  );
  const names = cut
    .filter(({ text }) => text.length >= 3 && text.length <= sentence.length)
    .sort((a, b) => b.text.length - a.text.length);
  const word = (letter: string | undefined): boolean => letter !== undefined && /[\w$:]/.test(letter);
  for (const { text, kernel } of names)
    for (let at = sentence.indexOf(text); at >= 0; at = sentence.indexOf(text, at + text.length)) {
      const after = sentence[at + text.length];
      // A colon may end the part of the sentence that has the name.
      if (!word(sentence[at - 1]) && !(after !== ':' && word(after))) add(at, { what: 'kernel', text, kernel });
    }
  for (const match of sentence.matchAll(/[\w$:<>,*& ~()[\]{}-]{4,}…[\w$:<>,*&~()[\]{}-]{2,}/gu)) {
    // A name that was cut, from a word's beginning on.
    for (const { index: from } of match[0].matchAll(/(?<= |^)\S/gu)) {
      const text = match[0].slice(from).replace(/[,.;:]+$/, '');
      const [head, tail] = text.split('…');
      if (head.length < kLeastCut) break;
      const kernel = cut.find((each) => each.text.startsWith(head) && each.text.endsWith(tail))?.kernel;
      if (kernel === undefined) continue;
      add(match.index + from, { what: 'kernel', text, kernel });
      break;
    }
  }
  for (const match of sentence.matchAll(/\brank (\d+)\b/giu))
    if (known.ranks.has(Number(match[1]))) add(match.index, { what: 'rank', text: match[0], rank: Number(match[1]) });
  if (known.views.has('operators') || known.views.has('code'))
    for (const match of sentence.matchAll(/[\w./+-]+\.(?:py|pyx|c|cc|cpp|cxx|cu|cuh|h|hpp|hip|rs|go|jl|f90):\d+/gu))
      add(match.index, { what: 'line', text: match[0], place: match[0] });
  if (known.views.has('ranks'))
    for (const match of sentence.matchAll(/tacho ranks\b/gu))
      add(match.index, { what: 'view', text: match[0], view: 'ranks' });
  for (const match of sentence.matchAll(
    /tacho stats (?:FILE )?--by (operator|module|line|function)\b(?: --input-shapes)?/gu,
  ))
    if (known.views.has('operators') || (known.views.has('code') && ['line', 'function'].includes(match[1])))
      add(match.index, {
        what: 'view',
        text: match[0],
        view: match[0].endsWith('--input-shapes') ? 'roofline' : 'code',
      });
  if (known.views.has('memory'))
    for (const match of sentence.matchAll(/tacho memory\b(?: FILE)?/gu))
      add(match.index, { what: 'view', text: match[0], view: 'memory' });
  found.sort((a, b) => a.at - b.at || b.end - a.end);
  const parts: Part[] = [];
  let until = 0;
  for (const { at, end, part } of found) {
    if (at < until) continue;
    if (at > until) parts.push({ what: 'text', text: sentence.slice(until, at) });
    parts.push(part);
    until = end;
  }
  if (until < sentence.length) parts.push({ what: 'text', text: sentence.slice(until) });
  return parts;
}
