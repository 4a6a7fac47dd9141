/** Which regions are drawn, how, and around which boxes. */

import type { Region } from '../data/document';
import type { Model } from '../data/model';
import type { PlanIndex } from '../data/planning';
import type { Tree } from '../data/scopes';
import type { Route } from '../layout/job';
import type { Box, Scene } from '../layout/scene';
import { sleeve, type Sleeve } from './sleeve';
import { type Standing, standingOf } from './standing';

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
  private readonly standing: Standing;

  constructor(
    private readonly model: Model,
    private readonly tree: Tree,
    private readonly index: PlanIndex,
    private readonly scene: Scene,
  ) {
    this.standing = standingOf(tree, index);
  }

  draw(region: Region): DrawnRegion | null {
    const known = this.known.get(region.id);
    if (known !== undefined) return known;
    const filled = this.standing.chosen(region);
    const members = this.members(region, filled);
    // inside a sleeve that winds around its ops, a box would stick out of it
    const parent = region.parent === null ? undefined : this.index.byId.get(region.parent);
    const boxed = !parent || (this.draw(parent)?.sleeve.box ?? true);
    const outer = sleeve(this.scene, members, this.routes(members), this.pad(region) + (filled ? 0 : RIVAL_PAD * Math.min(MOST_RANKS, this.standing.rank(region))), boxed);
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
      if (filled && value !== region.root && !this.standing.ownsFill(region, value)) continue;
      const at = this.scene.boxOfOp[value];
      if (at >= 0) boxes.push(this.scene.boxes[at]);
      else {
        const scope = this.closedAround(value);
        if (scope >= 0) inside.set(scope, (inside.get(scope) ?? 0) + 1);
      }
    }
    for (const [scope, held] of inside) if (held === this.standing.boxesIn(scope)) boxes.push(this.scene.boxes[this.scene.boxOfScope.get(scope)!]);
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
    return new Set([...inside].filter(([scope, held]) => held < this.standing.boxesIn(scope)).map(([scope]) => scope));
  }

  /** The regions that cross a closed scope's border: some of their ops stand inside, others do not. */
  crossing(scope: number): readonly Region[] {
    return this.standing.crossing(scope);
  }

  private closedAround(value: number): number {
    for (let scope = this.tree.scopeOf[value]; scope > 0; scope = this.tree.scopes[scope].parent) {
      const at = this.scene.boxOfScope.get(scope);
      if (at !== undefined) return this.scene.boxes[at].kind === 'scope' ? scope : -1;
    }
    return -1;
  }

  private pad(region: Region): number {
    return this.standing.around.has(region.id) ? PAD + NESTED_PAD : PAD;
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
