/** A plan's regions by id, by op and by scope: what the panes and the drawing look up. */

import type { Changes, Counts, Observation, Plan, Region, Verdict } from './document';
import { loss, ops, seconds, signed } from './figures';
import type { Tree } from './scopes';

export type Tally = Record<Verdict, number>;

export class PlanIndex {
  readonly byId = new Map<string, Region>();
  readonly byKey = new Map<string, Region>();
  /** Regions that an op is a member of, the one that fills its sleeve first. */
  private readonly members = new Map<number, Region[]>();
  private readonly tallies: Tally[];
  private readonly losses: Float64Array;
  /** Rows of observations by value; returned results are left out. */
  readonly observed = new Map<number, number[]>();

  constructor(
    readonly plan: Plan,
    tree: Tree,
  ) {
    this.tallies = tree.scopes.map(() => ({ taken: 0, declined: 0, blocked: 0, near_miss: 0 }));
    this.losses = new Float64Array(tree.scopes.length);
    for (const region of [...plan.regions].sort((a, b) => FILLS[a.verdict] - FILLS[b.verdict])) {
      this.byId.set(region.id, region);
      this.byKey.set(region.key, region);
      for (const value of region.nodes) {
        const at = this.members.get(value);
        if (at) at.push(region);
        else this.members.set(value, [region]);
      }
      for (let scope = tree.scopeOf[region.root]; scope >= 0; scope = tree.scopes[scope].parent) {
        this.tallies[scope][region.verdict]++;
        this.losses[scope] += loss(region);
      }
    }
    plan.observations.forEach((observation, row) => {
      if (observation.kind === 'output') return;
      const rows = this.observed.get(observation.value) ?? [];
      rows.push(row);
      this.observed.set(observation.value, rows);
    });
  }

  of(value: number): Region[] {
    return this.members.get(value) ?? [];
  }

  /** Verdicts of the regions rooted anywhere inside a scope. */
  tally(scope: number): Tally {
    return this.tallies[scope];
  }

  /** Seconds that the regions rooted anywhere inside a scope lose, as modelled. */
  lost(scope: number): number {
    return this.losses[scope];
  }
}

/** A taken region owns its members' fill, then a blocked, then a declined one; a near miss never fills. */
const FILLS: Record<Verdict, number> = { taken: 0, blocked: 1, declined: 2, near_miss: 3 };

/** Applies what a what-if changed to the plan it was asked of. */
export function applied(base: Plan, changes: Changes): Plan {
  const changed = new Map(changes.changed.map((region) => [region.id, region]));
  const removed = new Set(changes.removed);
  let regions = base.regions.filter((region) => !removed.has(region.id)).map((region) => changed.get(region.id) ?? region);
  const known = new Set(regions.map((region) => region.id));
  regions = [...regions, ...changes.changed.filter((region) => !known.has(region.id))];
  if (changes.order) {
    const at = new Map(changes.order.map((id, i) => [id, i]));
    regions.sort((a, b) => at.get(a.id)! - at.get(b.id)!);
  }
  const { consumer, fidelity, machine, cost, dialect, digest, counts, totals, observations, findings, liveness } = changes;
  return { consumer, fidelity, machine, cost, dialect, digest, counts, totals, observations, findings, liveness, regions };
}

export function summary(counts: Counts): string {
  return `${ops(counts.ops)}, ${counts.taken} taken, ${counts.declined} declined, ${counts.blocked} blocked, ${counts.near_miss} near misses`;
}

/** The regions of a plan that another plan has not, or has with another verdict. */
export function changedIn(after: Plan, before: Plan): Set<string> {
  const old = new Map(before.regions.map((region) => [region.id, region.verdict]));
  return new Set(after.regions.filter((region) => old.get(region.id) !== region.verdict).map((region) => region.id));
}

/** Says what a what-if changed; times of two consumers or machines have a basis each and are never subtracted. */
export function difference(before: Plan, after: Plan): string {
  const old = new Map(before.regions.map((region) => [region.id, region.verdict]));
  let count = 0;
  for (const region of after.regions) {
    if (old.get(region.id) !== region.verdict) count++;
    old.delete(region.id);
  }
  count += old.size;
  return `${count} region${count === 1 ? '' : 's'} changed${times(before, after)}${count === 0 ? idle(before, after) : ''}`;
}

/** Says why the value that is read now, or no longer, changes nothing. */
function idle(before: Plan, after: Plan): string {
  const asked = (plan: Plan): Observation[] => plan.observations.filter((o) => o.kind !== 'output' && !o.ignored);
  const without = (some: Observation[], others: Observation[]): Observation[] => some.filter((o) => !others.some((one) => one.value === o.value));
  const [was, is] = [asked(before), asked(after)];
  const [found] = [...without(is, was), ...without(was, is)];
  return found?.idle ? `: reading ${found.name ?? `%${found.value}`} ${found.idle}` : '';
}

function times(before: Plan, after: Plan): string {
  const [was, is] = [before.totals.planned?.seconds?.value, after.totals.planned?.seconds?.value];
  if (was === undefined || is === undefined) return '';
  const on = (plan: Plan): string => `${plan.consumer}, ${plan.machine}`;
  if (on(before) !== on(after)) return `, modelled ${seconds(was)} (${on(before)}) and ${seconds(is)} (${on(after)})`;
  return was === is ? '' : `, modelled ${signed({ value: is - was, unit: 'second' })}`;
}
