/** A question and a selection in the numbers of the program that came after the one that it was asked of. */

import type { Observation, Options } from '../data/document';

/** What values and rows of observations mean: a program, and who reads what in it. */
export interface Numbering {
  graph: string | null;
  observations: readonly Observation[];
}

/** Where each value of the program of before stands now, null where it is gone; null altogether where that is not known. */
export type Moved = readonly (number | null)[] | null;

/** Whether a question names values or rows by their numbers, which a save gives anew. */
export const numbered = ({ observe, ignore, beside }: Options): boolean => [observe, ignore, beside].some((rows) => rows?.length);

/** What was asked of one program, as it is asked of the next: rows by their names, else by what they read, values by where they stand now; and what is lost. */
export function renamed(options: Options, was: Numbering | null, now: Numbering, moved: Moved): { kept: Options; lost: string[] } {
  const lost: string[] = [];
  const { observe, ignore, beside, ...others } = options;
  const same = was !== null && was.graph !== null && was.graph === now.graph;
  const place = (value: number): number | null => (same ? value : (moved?.[value] ?? null));
  /** What makes a row known in the new numbering. */
  const naming = ({ kind, name, value }: Observation, at: (value: number) => number | null): string | null => (name !== null ? `${kind} ${name}` : at(value) === null ? null : `${kind} %${at(value)}`);
  const named = { was: (was?.observations ?? []).map((one) => naming(one, place)), now: now.observations.map((one) => naming(one, (value) => value)) };
  const only = (all: readonly (string | null)[], key: string | null): number => (key !== null && all.filter((one) => one === key).length === 1 ? all.indexOf(key) : -1);
  const rows = (all: number[] | undefined, word: string): number[] | undefined => all?.flatMap((row) => {
    const old = was?.observations[row];
    const to = old && only(named.was, named.was[row]) === row ? only(named.now, named.was[row]) : -1;
    if (to < 0) lost.push(`${word} ${old?.name ?? `%${old?.value ?? row}`}`);
    return to < 0 ? [] : [to];
  });
  const values = observe?.flatMap((value) => {
    const to = place(value);
    if (to === null) lost.push(`observing %${value}`);
    return to === null ? [] : [to];
  });
  return { kept: { ...others, observe: values, ignore: rows(ignore, 'not observing'), beside: rows(beside, 'recomputing') }, lost };
}

/** A program in the drawing: its graph, and which box each of its values is; the value's own number where it stands alone. */
export interface Drawn {
  graph: string | null;
  boxes: readonly number[] | null;
}

/** Where the values of one graph stand in another one. */
export interface Move {
  from: string;
  to: string | null;
  moved: Moved;
}

/**
 * What was selected in one drawing, as it is selected in the next: an op by the programs that have it, the page's own first, and where a
 * save left it; undefined where it is gone; anything else by its key.
 */
export function reselected(name: string, was: readonly Drawn[], now: readonly Drawn[], moves: readonly Move[]): string | undefined {
  if (!name.startsWith('o:')) return name;
  const box = Number(name.slice(2));
  for (const old of was) {
    const value = old.boxes ? old.boxes.indexOf(box) : box;
    for (const next of value < 0 ? [] : now) {
      const at = old.graph !== null && old.graph === next.graph ? value : moves.find(({ from, to }) => from === old.graph && to === next.graph)?.moved?.[value];
      if (at !== undefined && at !== null) return `o:${next.boxes ? next.boxes[at] : at}`;
    }
  }
  return undefined;
}
