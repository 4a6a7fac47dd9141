/** What goes into a scope and what comes out of it, by type; a function of the graph alone. */

import type { Model } from './model';
import type { Tree } from './scopes';

export interface Ends {
  into: string[];
  out: string[];
}

const known = new WeakMap<Tree, Map<number, Ends>>();

/** The types of the values that a scope reads and hands on, each value once, in trace order; constants and parameters are its own. */
export function endsOf(model: Model, tree: Tree, scope: number): Ends {
  const before = known.get(tree) ?? new Map<number, Ends>();
  known.set(tree, before);
  let ends = before.get(scope);
  if (!ends) before.set(scope, (ends = found(model, tree, scope)));
  return ends;
}

function found(model: Model, tree: Tree, scope: number): Ends {
  const { begin, end } = tree.scopes[scope];
  const inside = new Set(tree.order.subarray(begin, end));
  const results = new Set(model.graph.results);
  const [into, out] = [new Set<number>(), [] as number[]];
  for (const value of [...inside].sort((a, b) => a - b)) {
    if (model.chip[value]) continue;
    for (const operand of model.operandsOf(value)) if (!model.chip[operand] && !inside.has(operand)) into.add(operand);
    if (results.has(value) || model.usersOf(value).some((user) => !inside.has(user))) out.push(value);
  }
  const types = (values: Iterable<number>): string[] => [...values].map((value) => model.type(value));
  return { into: types([...into].sort((a, b) => a - b)), out: types(out) };
}

/** Writes types in few words: the first, and how many more there are. */
export function typesText(types: readonly string[]): string {
  return types.length ? `${types[0]}${types.length > 1 ? ` +${types.length - 1}` : ''}` : 'nothing';
}
