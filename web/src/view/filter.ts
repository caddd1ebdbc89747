// What is typed into the filter of a table.

/** Matches names as a regular expression without regard to case; null: everything. What is no expression is looked for as it stands. */
export function filterOf(text: string): { pattern: RegExp | null; literal: boolean } {
  if (text === '') return { pattern: null, literal: false };
  try {
    return { pattern: new RegExp(text, 'i'), literal: false };
  } catch {
    return { pattern: new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i'), literal: true };
  }
}
