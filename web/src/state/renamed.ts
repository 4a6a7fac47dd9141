/** A question in the numbers of the program that came after the one that it was asked of. */

import type { Observation, Options } from '../data/document';

/** What values and rows of observations mean: a program, and who reads what in it. */
export interface Numbering {
  graph: string | null;
  observations: readonly Observation[];
}

/** What was asked of one program, as it is asked of the next: rows by their names, values where the program is the same; and what is lost. */
export function renamed(options: Options, was: Numbering | null, now: Numbering): { kept: Options; lost: string[] } {
  const lost: string[] = [];
  const { observe, ignore, beside, ...others } = options;
  const same = was !== null && was.graph !== null && was.graph === now.graph;
  const naming = ({ kind, name, value }: Observation): string | null => (name !== null ? `${kind} ${name}` : same ? `${kind} %${value}` : null);
  const only = (all: readonly Observation[], key: string | null): number => (key !== null && all.filter((one) => naming(one) === key).length === 1 ? all.findIndex((one) => naming(one) === key) : -1);
  const rows = (all: number[] | undefined, word: string): number[] | undefined => all?.flatMap((row) => {
    const old = was?.observations[row];
    const to = old && only(was.observations, naming(old)) === row ? only(now.observations, naming(old)) : -1;
    if (to < 0) lost.push(`${word} ${old?.name ?? `%${old?.value ?? row}`}`);
    return to < 0 ? [] : [to];
  });
  const values = observe?.filter((value) => same || !lost.push(`observing %${value}`));
  return { kept: { ...others, observe: values, ignore: rows(ignore, 'not observing'), beside: rows(beside, 'recomputing') }, lost };
}
