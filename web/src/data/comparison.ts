/** Two plans in one numbering: the merged graph's marks, and the later plan's regions moved into it. */

import type { Observation, Plan, Region } from './document';
import type { Diff } from './source';

export type Mark = 'same' | 'added' | 'removed' | 'retyped';

/** Which of two compared plans is shown: the earlier one, the later one, or both in one drawing. */
export type Side = 'a' | 'b' | 'both';

export interface Comparison {
  name: string;
  title: string;
  marks: Mark[];
  ofBefore: number[];
  transitions: Transition[];
  /** The earlier plan in the merged numbering, its files, and the types that it has otherwise. */
  before: Plan;
  pathsBefore: string[];
  typesBefore: ReadonlyMap<number, string>;
}

export interface Transition {
  before: Region | null;
  after: Region | null;
  /** Where to look: the root in the merged numbering. */
  value: number;
}

export function comparison(name: string, diff: Diff): Comparison {
  return {
    before: renumbered(diff.plan_before, diff.of_before), pathsBefore: diff.paths_before,
    typesBefore: new Map(Object.entries(diff.types_before).map(([value, type]) => [Number(value), type])),
    name, title: diff.before, marks: diff.marks.map((row) => diff.legend[row]), ofBefore: diff.of_before,
    transitions: diff.regions.map(({ before, after }) => ({
      before, after, value: after ? diff.of_after[after.root] : diff.of_before[before!.root],
    })),
  };
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
