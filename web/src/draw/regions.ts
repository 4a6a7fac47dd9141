/** Which regions are drawn, how, and around which boxes. */

import type { Region } from '../data/document';
import type { Model } from '../data/model';
import type { PlanIndex } from '../data/planning';
import type { Tree } from '../data/scopes';
import type { Route } from '../layout/job';
import type { Box, Scene } from '../layout/scene';
import { sleeve, type Sleeve } from './sleeve';

export interface DrawnRegion {
  region: Region;
  /** Whether it fills its sleeve: at most one does at any op. */
  filled: boolean;
  sleeve: Sleeve;
}

const PAD = 9;
const NESTED_PAD = 6;
/** Outlines of rivals stand so far apart; those beyond the last rank stand where it does, short of other boxes. */
const RIVAL_PAD = 5;
const MOST_RANKS = 4;

/** Draws regions of one scene and one plan, each once. */
export class RegionDrawer {
  private readonly known = new Map<string, DrawnRegion | null>();
  private segmentsOf: Map<number, number[]> | null = null;
  /** Regions that others are taken inside of. */
  private around: Set<string> | null = null;
  private ranks: Map<string, number> | null = null;
  private crossings: Map<number, Region[]> | null = null;

  constructor(
    private readonly model: Model,
    private readonly tree: Tree,
    private readonly index: PlanIndex,
    private readonly scene: Scene,
  ) {}

  /** Whether a region is its computing ops' own: chosen by the plan over all others that want them. */
  chosen(region: Region): boolean {
    if (region.verdict === 'near_miss') return false;
    const claimed = region.computing.length ? region.computing : region.nodes;
    return claimed.every((value) => {
      const first = this.index.of(value).find((other) => other.verdict !== 'near_miss');
      return !first || first.id === region.id || this.inside(first, region);
    });
  }

  draw(region: Region): DrawnRegion | null {
    const known = this.known.get(region.id);
    if (known !== undefined) return known;
    const filled = this.chosen(region);
    const members = this.members(region, filled);
    // inside a sleeve that winds around its ops, a box would stick out of it
    const parent = region.parent === null ? undefined : this.index.byId.get(region.parent);
    const boxed = !parent || (this.draw(parent)?.sleeve.box ?? true);
    const outer = sleeve(this.scene, members, this.routes(members), this.pad(region) + (filled ? 0 : RIVAL_PAD * this.rank(region)), boxed);
    const drawn = outer && { region, filled, sleeve: outer };
    this.known.set(region.id, drawn);
    return drawn;
  }

  /** Boxes of a region's ops; a closed scope is one where the region holds all of it. */
  members(region: Region, filled: boolean): Box[] {
    const boxes: Box[] = [];
    const inside = new Map<number, number>();
    for (const value of region.nodes) {
      if (this.tree.owner[value] !== value) continue;
      if (filled && value !== region.root && !this.ownsFill(region, value)) continue;
      const at = this.scene.boxOfOp[value];
      if (at >= 0) boxes.push(this.scene.boxes[at]);
      else {
        const scope = this.closedAround(value);
        if (scope >= 0) inside.set(scope, (inside.get(scope) ?? 0) + 1);
      }
    }
    for (const [scope, held] of inside) if (held === this.boxesIn(scope)) boxes.push(this.scene.boxes[this.scene.boxOfScope.get(scope)!]);
    return boxes;
  }

  /** The closed scopes that hold some of a region's ops, and not only those. */
  partly(region: Region): Set<number> {
    const inside = new Map<number, number>();
    for (const value of region.nodes) {
      if (this.tree.owner[value] !== value || this.scene.boxOfOp[value] >= 0) continue;
      const scope = this.closedAround(value);
      if (scope >= 0) inside.set(scope, (inside.get(scope) ?? 0) + 1);
    }
    return new Set([...inside].filter(([scope, held]) => held < this.boxesIn(scope)).map(([scope]) => scope));
  }

  /** The regions that cross a closed scope's border: some of their ops stand inside, others do not. */
  crossing(scope: number): readonly Region[] {
    this.crossings ??= this.findCrossings();
    return this.crossings.get(scope) ?? [];
  }

  private findCrossings(): Map<number, Region[]> {
    const found = new Map<number, Region[]>();
    for (const region of this.index.plan.regions) {
      if (region.verdict === 'near_miss') continue;
      const inside = new Set<number>();
      for (const value of region.nodes) if (this.tree.owner[value] === value) inside.add(this.scene.boxOfOp[value] >= 0 ? -1 : this.closedAround(value));
      if (inside.size > 1) for (const scope of inside) if (scope >= 0) found.set(scope, [...(found.get(scope) ?? []), region]);
    }
    return found;
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
    return Math.min(MOST_RANKS, this.ranks.get(region.id) ?? 1);
  }

  private closedAround(value: number): number {
    for (let scope = this.tree.scopeOf[value]; scope > 0; scope = this.tree.scopes[scope].parent) {
      const at = this.scene.boxOfScope.get(scope);
      if (at !== undefined) return this.scene.boxes[at].kind === 'scope' ? scope : -1;
    }
    return -1;
  }

  private boxesIn(scope: number): number {
    const { begin, end } = this.tree.scopes[scope];
    let count = 0;
    for (let p = begin; p < end; p++) if (this.tree.owner[this.tree.order[p]] === this.tree.order[p]) count++;
    return count;
  }

  /** Movement and constants are shared freely; the first of two chosen regions draws them. */
  private ownsFill(region: Region, value: number): boolean {
    const first = this.index.of(value).find((other) => other.verdict !== 'near_miss' && this.chosen(other));
    return !first || first.id === region.id || this.inside(first, region) || this.inside(region, first);
  }

  private inside(inner: Region, outer: Region): boolean {
    return inner.parent === outer.id;
  }

  private pad(region: Region): number {
    this.around ??= new Set(this.index.plan.regions.flatMap((other) => other.parent ?? []));
    return this.around.has(region.id) ? PAD + NESTED_PAD : PAD;
  }

  /** The drawn edges between members, across frames too where a value leaves one scope for another. */
  private routes(members: Box[]): Route[] {
    const own = new Set(members.filter((box) => box.kind === 'op').map((box) => box.id));
    const scopes = new Set(members.filter((box) => box.kind === 'scope').map((box) => ~box.id));
    const routes: Route[] = [];
    const segments = this.byValue();
    const produced = [...own, ...[...scopes].flatMap((code) => this.leaving(~code))];
    for (const value of produced) {
      const crosses = [...this.model.usersOf(value)].some(
        (user) => this.tree.scopeOf[user] !== this.tree.scopeOf[value] && (own.has(user) || scopes.has(~this.closedAround(user))),
      );
      for (const row of segments.get(value) ?? []) {
        const { from, to, route } = this.scene.segments[row];
        const inner = (end: number | null): boolean => (end === null ? crosses : end >= 0 ? own.has(end) : scopes.has(end) || crosses);
        if (inner(from) && inner(to)) routes.push(route);
      }
    }
    return routes;
  }

  /** Values that a closed scope hands on. */
  private leaving(scope: number): number[] {
    const { begin, end } = this.tree.scopes[scope];
    const inside = new Set(this.tree.order.subarray(begin, end));
    return [...inside].filter((value) => !this.model.chip[value] && this.model.usersOf(value).some((user) => !inside.has(user)));
  }

  private byValue(): Map<number, number[]> {
    if (this.segmentsOf) return this.segmentsOf;
    this.segmentsOf = new Map();
    this.scene.segments.forEach(({ values }, row) => {
      for (const value of values) {
        const rows = this.segmentsOf!.get(value);
        if (rows) rows.push(row);
        else this.segmentsOf!.set(value, [row]);
      }
    });
    return this.segmentsOf;
  }
}
