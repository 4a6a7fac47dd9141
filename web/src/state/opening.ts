/** Which scopes stand open at first: from the top, as many as fit one look; folds stay shut. A function of the graph. */

import { enclosing, type Tree } from '../data/scopes';

const MOST_BOXES = 48;
const MOST_IN_THE_MAIN_SCOPE = 160;

export function openedAtFirst(tree: Tree): Set<number> {
  const open = new Set<number>([0]);
  let boxes = tree.scopes[0].children.length;
  let queue = tree.scopes[0].children.filter((child) => child < 0).map((child) => ~child);
  while (queue.length) {
    const next: number[] = [];
    for (const id of queue) {
      const scope = tree.scopes[id];
      const drawn = scope.kind === 'fold' ? tree.scopes[~scope.children[0]].children : scope.children;
      // a scope that is nearly the whole model says nothing while it is closed
      const most = scope.kind !== 'fold' && scope.end - scope.begin > tree.order.length / 2 ? MOST_IN_THE_MAIN_SCOPE : MOST_BOXES;
      if (boxes + drawn.length - 1 > most) continue;
      boxes += drawn.length - 1;
      open.add(id);
      next.push(...drawn.filter((child) => child < 0).map((child) => ~child));
    }
    queue = next;
  }
  return open;
}

/** Opens everything around an op, and turns folds to the instance that holds it. */
export function reveal(tree: Tree, open: ReadonlySet<number>, shown: ReadonlyMap<number, number>, value: number): {
  open: Set<number>;
  shown: Map<number, number>;
} {
  const result = { open: new Set(open), shown: new Map(shown) };
  for (const id of enclosing(tree, value)) {
    result.open.add(id);
    const parent = tree.scopes[tree.scopes[id].parent];
    if (parent.kind === 'fold') result.shown.set(parent.id, parent.children.indexOf(~id));
  }
  return result;
}
