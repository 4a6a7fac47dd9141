import { expect, it } from 'vitest';

import type { Plan, Region } from '../src/data/document';
import { PlanIndex } from '../src/data/planning';
import { buildTree } from '../src/data/scopes';
import { standingOf } from '../src/draw/standing';
import { model, random, tangled } from './graphs';

const m = model(tangled(200, 6, true));
const tree = buildTree(m);
const next = random(3);
const regions = Array.from({ length: 60 }, (_, i): Region => {
  const first = Math.floor(next() * (m.count - 24));
  const nodes = Array.from({ length: 2 + Math.floor(next() * 20) }, (_, k) => first + k);
  const verdict = (['taken', 'declined', 'blocked', 'near_miss'] as const)[i % 4];
  return { id: `r${i}`, key: `k${i}`, root: nodes.at(-1)!, nodes, computing: nodes, parent: null, verdict } as unknown as Region;
});
const standing = standingOf(tree, new PlanIndex({ regions, observations: [] } as unknown as Plan, tree));

/** The boxes of a scope, counted op by op. */
function within(scope: number): Set<number> {
  const { begin, end } = tree.scopes[scope];
  return new Set([...tree.order.subarray(begin, end)].filter((value) => tree.owner[value] === value));
}

it('a region crosses a scope that holds some of its boxes and not all', () => {
  let crossed = 0;
  for (const { id } of tree.scopes.slice(1)) {
    const inside = within(id);
    const expected = regions.filter((region) => {
      const boxes = region.nodes.filter((value) => tree.owner[value] === value);
      const held = boxes.filter((value) => inside.has(value)).length;
      return region.verdict !== 'near_miss' && held > 0 && held < boxes.length;
    });
    expect(standing.crossing(id)).toEqual(expected);
    crossed += expected.length;
  }
  expect(crossed).toBeGreaterThan(10);
});

it('a scope counts its boxes', () => {
  for (const { id } of tree.scopes) expect(standing.boxesIn(id)).toBe(within(id).size);
});

it('rivals that share an op have ranks of their own', () => {
  const rivals = regions.filter((region) => !standing.chosen(region));
  expect(rivals.length).toBeGreaterThan(10);
  for (const one of rivals) for (const other of rivals)
    if (one !== other && one.nodes.some((value) => other.nodes.includes(value))) expect(standing.rank(one)).not.toBe(standing.rank(other));
});
