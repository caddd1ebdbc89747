// Marks in the timeline: moments with notes, between which time is measured; the address keeps them.

export interface Mark {
  at: number;
  note: string;
}

export const kMostMarks = 100;

/** From the address: "1200.5~a%20note,3400"; what is no moment is left out. By time. */
export function marksOf(word: string | undefined): Mark[] {
  return (word ?? '')
    .split(',')
    .flatMap((each): Mark[] => {
      const [, at, note] = /^([^~]*)(?:~(.*))?$/s.exec(each) ?? ['', '', ''];
      if (at === '' || !Number.isFinite(Number(at))) return [];
      let text = '';
      try {
        text = decodeURIComponent(note ?? '');
      } catch {
        // A link that somebody cut: the moment is there, its note is not.
      }
      return [{ at: Number(at), note: text }];
    })
    .sort((a, b) => a.at - b.at)
    .slice(0, kMostMarks);
}
export const marksWord = (marks: readonly Mark[]): string =>
  [...marks]
    .sort((a, b) => a.at - b.at)
    .slice(0, kMostMarks)
    .map(({ at, note }) => `${Number(at.toFixed(3))}${note === '' ? '' : `~${encodeURIComponent(note.slice(0, 500))}`}`)
    .join(',');

/** With one more; one that is there already stays alone. */
export const withMark = (marks: readonly Mark[], at: number): Mark[] =>
  marks.some((each) => Math.abs(each.at - at) < 0.001) ? [...marks] : [...marks, { at, note: '' }];
