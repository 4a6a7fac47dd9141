/** Edits of a finding's fix as a unified diff: shown and copied, never written. */

import type { Edit } from './document';

const CONTEXT = 3;

/** Applies edits (lines from 1, columns from 0 in code points, ends exclusive) to a text. */
export function apply(text: string, edits: readonly Edit[]): string {
  const lines = text.split('\n');
  const offset = (line: number, column: number): number => {
    let at = 0;
    for (let i = 0; i < line - 1; i++) at += (lines[i]?.length ?? 0) + 1;
    return at + [...(lines[line - 1] ?? '')].slice(0, column).join('').length;
  };
  let result = text;
  for (const edit of [...edits].sort((a, b) => b.line - a.line || b.column - a.column))
    result = result.slice(0, offset(edit.line, edit.column)) + edit.text + result.slice(offset(edit.end_line, edit.end_column));
  return result;
}

/** Writes the edits of one file as a unified diff. */
export function unified(path: string, text: string, edits: readonly Edit[]): string {
  const before = text.split('\n');
  const hunks: string[] = [`--- a/${path}`, `+++ b/${path}`];
  let shift = 0;
  for (const group of grouped(edits)) {
    const first = Math.max(1, group[0].line - CONTEXT);
    // an edit that ends at column 0 of a line has not touched that line
    const touched = Math.max(...group.map((e) => (e.end_column === 0 && e.end_line > e.line ? e.end_line - 1 : e.end_line)));
    const last = Math.min(before.length, touched + CONTEXT);
    const old = before.slice(first - 1, last);
    const moved = group.map((e) => ({ ...e, line: e.line - first + 1, end_line: e.end_line - first + 1 }));
    const fresh = apply(`${old.join('\n')}\n`, moved).split('\n').slice(0, -1);
    hunks.push(`@@ -${first},${old.length} +${first + shift},${fresh.length} @@`, ...body(old, fresh));
    shift += fresh.length - old.length;
  }
  return `${hunks.join('\n')}\n`;
}

function grouped(edits: readonly Edit[]): Edit[][] {
  const groups: Edit[][] = [];
  for (const edit of [...edits].sort((a, b) => a.line - b.line || a.column - b.column)) {
    const last = groups.at(-1);
    if (last && edit.line - last.at(-1)!.end_line <= 2 * CONTEXT) last.push(edit);
    else groups.push([edit]);
  }
  return groups;
}

/** Lines kept, removed and added: the longest common head and tail, then a small longest-common-subsequence between. */
function body(old: string[], fresh: string[]): string[] {
  const table = Array.from({ length: old.length + 1 }, () => new Array<number>(fresh.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = fresh.length - 1; j >= 0; j--)
      table[i][j] = old[i] === fresh[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  const lines: string[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      lines.push(` ${old[i++]}`);
      j++;
    } else if (i < old.length && (j >= fresh.length || table[i + 1][j] >= table[i][j + 1])) lines.push(`-${old[i++]}`);
    else lines.push(`+${fresh[j++]}`);
  }
  return lines;
}
