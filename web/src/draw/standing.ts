/** How the regions of one plan stand to each other and to the scopes, whatever is open: worked out once a plan, not by every drawing. */

import type { Region } from '../data/document';
import type { PlanIndex } from '../data/planning';
import type { Tree } from '../data/scopes';

const known = new WeakMap<PlanIndex, Standing>();

export function standingOf(tree: Tree, index: PlanIndex): Standing {
  const found = known.get(index) ?? new Standing(tree, index);
  known.set(index, found);
  return found;
}

export class Standing {
  /** Regions that others are taken inside of. */
  readonly around: ReadonlySet<string>;
  private readonly picked = new Map<string, boolean>();
  private ranks: Map<string, number> | null = null;
  private crossings: Map<number, Region[]> | null = null;
  /** How many boxes stand before a place of the tree's order. */
  private readonly boxesBefore: Int32Array;

  constructor(
    private readonly tree: Tree,
    private readonly index: PlanIndex,
  ) {
    this.around = new Set(index.plan.regions.flatMap((other) => other.parent ?? []));
    const { order, owner } = tree;
    this.boxesBefore = new Int32Array(order.length + 1);
    for (let p = 0; p < order.length; p++) this.boxesBefore[p + 1] = this.boxesBefore[p] + (owner[order[p]] === order[p] ? 1 : 0);
  }

  /** Whether a region is its computing ops' own: chosen by the plan over all others that want them. */
  chosen(region: Region): boolean {
    let found = this.picked.get(region.id);
    if (found === undefined) this.picked.set(region.id, (found = this.isChosen(region)));
    return found;
  }

  private isChosen(region: Region): boolean {
    if (region.verdict === 'near_miss') return false;
    const claimed = region.computing.length ? region.computing : region.nodes;
    return claimed.every((value) => {
      const first = this.index.of(value).find((other) => other.verdict !== 'near_miss');
      return !first || first.id === region.id || inside(first, region);
    });
  }

  /** How many outlines stand between a region that is not chosen and its boxes: none that shares an op with it has the same rank. */
  rank(region: Region): number {
    if (!this.ranks) {
      this.ranks = new Map();
      for (const other of this.index.byId.values()) {
        if (this.chosen(other)) continue;
        const used = new Set(other.nodes.flatMap((value) => this.index.of(value).flatMap((one) => this.ranks!.get(one.id) ?? [])));
        let rank = 1;
        while (used.has(rank)) rank++;
        this.ranks.set(other.id, rank);
      }
    }
    return this.ranks.get(region.id) ?? 1;
  }

  /** Movement and constants are shared freely; the first of two chosen regions draws them. */
  ownsFill(region: Region, value: number): boolean {
    const first = this.index.of(value).find((other) => other.verdict !== 'near_miss' && this.chosen(other));
    return !first || first.id === region.id || inside(first, region) || inside(region, first);
  }

  boxesIn(scope: number): number {
    const { begin, end } = this.tree.scopes[scope];
    return this.boxesBefore[end] - this.boxesBefore[begin];
  }

  /** The regions of which some ops stand inside a scope and others do not. */
  crossing(scope: number): readonly Region[] {
    this.crossings ??= this.findCrossings();
    return this.crossings.get(scope) ?? [];
  }

  private findCrossings(): Map<number, Region[]> {
    const found = new Map<number, Region[]>();
    const { owner, scopeOf, scopes } = this.tree;
    for (const region of this.index.plan.regions) {
      if (region.verdict === 'near_miss') continue;
      const direct = new Map<number, number>();
      let boxes = 0;
      for (const value of region.nodes) {
        if (owner[value] !== value) continue;
        boxes++;
        direct.set(scopeOf[value], (direct.get(scopeOf[value]) ?? 0) + 1);
      }
      if (direct.size < 2) continue; // all in one scope, and so in all around it
      const held = new Map<number, number>();
      for (const [scope, count] of direct) for (let at = scope; at > 0; at = scopes[at].parent) held.set(at, (held.get(at) ?? 0) + count);
      for (const [scope, count] of held) {
        if (count === boxes) continue;
        const crossed = found.get(scope);
        if (crossed) crossed.push(region);
        else found.set(scope, [region]);
      }
    }
    return found;
  }
}

function inside(inner: Region, outer: Region): boolean {
  return inner.parent === outer.id;
}
