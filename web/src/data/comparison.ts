/** Two plans in one numbering: the merged graph's marks, and the later plan's regions moved into it. */

import type { Observation, Plan, Region } from './document';
import type { Diff } from './source';

export type Mark = 'same' | 'added' | 'removed' | 'retyped';

export interface Comparison {
  name: string;
  title: string;
  marks: Mark[];
  ofBefore: number[];
  transitions: Transition[];
}

export interface Transition {
  before: Region | null;
  after: Region | null;
  /** Where to look: the root in the merged numbering. */
  value: number;
}

export function comparison(name: string, diff: Diff): Comparison {
  return {
    name, title: diff.before, marks: diff.marks.map((row) => diff.legend[row]), ofBefore: diff.of_before,
    transitions: diff.regions.map(({ before, after }) => ({
      before, after, value: after ? diff.of_after[after.root] : diff.of_before[before!.root],
    })),
  };
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
