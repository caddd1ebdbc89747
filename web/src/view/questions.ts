// Questions of SQL that one click asks, over tacho's own tables; only those whose tables the run has something in.

import type { Run } from './source';

export interface Question {
  title: string;
  /** Tables of events that it needs. */
  needs: string[];
  sql: string;
  /** How its rows are best seen, as the address says it (SqlPlot). */
  plot?: string;
}

const kQuestions: Question[] = [
  {
    title: 'Kernels by time',
    needs: ['dispatch'],
    sql: `SELECT name, count(*) AS launches, sum(duration) AS total_ns, avg(duration) AS mean_ns
FROM tacho.dispatch GROUP BY name ORDER BY total_ns DESC LIMIT 50`,
    plot: 'bars',
  },
  {
    title: 'Longest gaps on a queue',
    needs: ['dispatch'],
    sql: `SELECT start - before AS gap_ns, before AS gap_start, after, track FROM (
  SELECT start, track, name AS after, max("end") OVER (PARTITION BY track ORDER BY start
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM tacho.dispatch)
WHERE start > before ORDER BY gap_ns DESC LIMIT 50`,
  },
  {
    title: 'From call to kernel',
    needs: ['dispatch', 'api'],
    sql: `SELECT d.name, count(*) AS launches, avg(d.start - a.start) AS mean_ns, max(d.start - a.start) AS longest_ns
FROM tacho.dispatch AS d JOIN tacho.api AS a ON a.correlation = d.correlation AND d.correlation > 0
WHERE d.start >= a.start GROUP BY d.name ORDER BY mean_ns DESC LIMIT 50`,
  },
  {
    title: 'Kernel durations over time',
    needs: ['dispatch'],
    sql: `SELECT start, duration, name FROM tacho.dispatch ORDER BY start LIMIT 10000`,
    plot: 'points',
  },
  {
    title: 'Calls by time',
    needs: ['api'],
    sql: `SELECT name, count(*) AS calls, sum(duration) AS total_ns, max(duration) AS longest_ns
FROM tacho.api GROUP BY name ORDER BY total_ns DESC LIMIT 50`,
    plot: 'bars',
  },
  {
    title: 'Copies by direction',
    needs: ['copy'],
    sql: `SELECT name, count(*) AS copies, sum(bytes) AS size_bytes, sum(duration) AS total_ns
FROM tacho.copy GROUP BY name ORDER BY total_ns DESC`,
  },
  {
    title: 'Ranges by time',
    needs: ['marker'],
    sql: `SELECT name, count(*) AS ranges, sum(duration) AS total_ns, avg(duration) AS mean_ns
FROM tacho.marker GROUP BY name ORDER BY total_ns DESC LIMIT 50`,
    plot: 'bars',
  },
  {
    title: 'Functions by samples',
    needs: ['sample'],
    sql: `SELECT name, count(*) AS samples, sum(duration) AS total_ns
FROM tacho.sample GROUP BY name ORDER BY samples DESC LIMIT 50`,
    plot: 'bars',
  },
  {
    title: 'Messages by call',
    needs: ['message'],
    sql: `SELECT name, count(*) AS messages, sum(bytes) AS size_bytes FROM tacho.message GROUP BY name ORDER BY size_bytes DESC`,
  },
];

export const questionsOf = (run: Run | null): Question[] =>
  kQuestions.filter(({ needs }) => needs.every((table) => (run?.dims?.[table] ?? 0) > 0));

// ---- what was asked before, newest first

const kKept = 30;
const kKey = 'tacho.sql.history';

export function historyOf(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(kKey) ?? '[]');
    return Array.isArray(kept) ? kept.filter((each): each is string => typeof each === 'string') : [];
  } catch {
    return [];
  }
}
/** With this statement first; without storage it is kept for as long as the page is open. */
export function remembered(history: readonly string[], sql: string): string[] {
  const next = [sql, ...history.filter((each) => each !== sql)].slice(0, kKept);
  try {
    localStorage.setItem(kKey, JSON.stringify(next));
  } catch {
    // It is not kept beyond this page.
  }
  return next;
}
