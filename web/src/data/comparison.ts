/** Two plans in one numbering: the merged graph's marks, and the later plan's regions moved into it. */

import type { Figure, Observation, Plan, Region } from './document';
import { loss } from './figures';
import type { Seen } from './model';
import type { Diff } from './source';

export type Mark = 'same' | 'added' | 'removed' | 'retyped';

/** Which of two compared plans is shown: the earlier one, the later one, or both in one drawing. */
export type Side = 'a' | 'b' | 'both';

export interface Comparison {
  name: string;
  title: string;
  /** Of the plan that is compared with, where it is another target's. */
  revision?: number;
  marks: Mark[];
  ofBefore: number[];
  ofAfter: number[];
  graphBefore: string | null;
  transitions: Transition[];
  /** The earlier plan in the merged numbering, its files, and the types that it has otherwise. */
  before: Plan;
  pathsBefore: string[];
  /** Each side's own numbers, places and types. */
  seen: Record<'a' | 'b', Seen>;
}

export interface Transition {
  before: Region | null;
  after: Region | null;
  /** What it loses now beyond what it lost before; null where neither loses anything. */
  lost: Figure | null;
  /** Where to look: the root in the merged numbering. */
  value: number;
}

export function comparison(name: string, diff: Diff, revision?: number): Comparison {
  return {
    before: renumbered(diff.plan_before, diff.of_before), pathsBefore: diff.paths_before,
    seen: {
      a: seen(diff, diff.of_before, diff.locations_before, new Map(Object.entries(diff.types_before).map(([value, type]) => [Number(value), type]))),
      b: seen(diff, diff.of_after, diff.of_after.map((value) => diff.graph.ops.location[value]), new Map()),
    },
    name, revision, title: diff.before, marks: diff.marks.map((row) => diff.legend[row]), ofBefore: diff.of_before, ofAfter: diff.of_after, graphBefore: diff.graph_before,
    transitions: diff.regions.map(({ before, after }) => ({
      before, after, lost: lostMore(before, after), value: after ? diff.of_after[after.root] : diff.of_before[before!.root],
    })).sort((a, b) => Math.abs(b.lost?.value ?? 0) - Math.abs(a.lost?.value ?? 0)),
  };
}

function seen({ marks }: Diff, to: readonly number[], places: readonly number[], types: Seen['types']): Seen {
  const [numbers, locations] = [marks.map(() => -1), marks.map(() => -1)];
  to.forEach((value, own) => ([numbers[value], locations[value]] = [own, places[own]]));
  return { numbers, locations, types };
}

/** The programs of a comparison, the one that a side is about first. */
export function programs({ seen }: Comparison, side: Side): Seen[] {
  return side === 'a' ? [seen.a, seen.b] : [seen.b, seen.a];
}

function lostMore(before: Region | null, after: Region | null): Figure | null {
  const [was, is] = [before, after].map((region) => (region ? loss(region) : 0));
  const price = [after, before].flatMap((region) => (region && loss(region) > 0 ? [(region.cost.price ?? region.cost.benefit)!] : []))[0];
  return price ? { ...price, value: is - was } : null;
}

/** How an op is marked where one side or both are shown; `absent` where that side has no such op. */
export function markOf(compared: Comparison | null, side: Side, value: number): Mark | 'absent' {
  const mark = compared?.marks[value] ?? 'same';
  if (side === 'both') return mark;
  return mark === (side === 'a' ? 'added' : 'removed') ? 'absent' : 'same';
}

/** Moves every value that a plan names. */
export function renumbered(plan: Plan, to: readonly number[]): Plan {
  const all = (values: number[]): number[] => values.map((value) => to[value]);
  const regions = plan.regions.map((region): Region => ({
    ...region, root: to[region.root], nodes: all(region.nodes), computing: all(region.computing),
    bindings: Object.fromEntries(Object.entries(region.bindings).map(([name, value]) => [name, to[value]])),
    named: Object.fromEntries(Object.entries(region.named).map(([name, values]) => [name, all(values)])),
    paths: region.paths.map(all), readers: region.readers && all(region.readers), nearest_free: region.nearest_free === null ? null : to[region.nearest_free],
    near_miss: region.near_miss && { ...region.near_miss, at: to[region.near_miss.at] },
  }));
  const observations = plan.observations.map((o): Observation => ({ ...o, value: to[o.value] }));
  const live = plan.liveness;
  return { ...plan, regions, observations, liveness: live && { ...live, steps: all(live.steps), recorded_steps: live.recorded_steps && all(live.recorded_steps) } };
}
