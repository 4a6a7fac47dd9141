import { describe, expect, it } from 'vitest';

import type { Plan } from '../src/data/document';
import { difference, PlanIndex } from '../src/data/planning';
import type { Tree } from '../src/data/scopes';

const plan = (consumer: string, machine: string, time: number, verdict = 'taken'): Plan =>
  ({ consumer, machine, regions: [{ id: 'r1', verdict }], observations: [], totals: { planned: { seconds: { value: time } } } }) as unknown as Plan;

describe('what a what-if changed', () => {
  const before = plan('home', 'reference', 2.15e-3);
  it('is told as a difference of one cost model', () => {
    expect(difference(before, plan('home', 'reference', 2.45e-3, 'blocked'))).toBe('1 region changed, modelled +300 us');
    expect(difference(before, plan('home', 'reference', 2.15e-3))).toBe('0 regions changed');
  });
  it('says why a value that is read now, or no longer, changes nothing', () => {
    const idle = 'blocks nothing: attention, which never makes it, is declined anyway';
    const reading = (ignored: boolean): Plan => ({ ...before, observations: [{ value: 33, name: null, kind: 'observe', ignored, blocks: [], idle }] }) as unknown as Plan;
    const told = `0 regions changed: reading %33 ${idle}`;
    expect(difference(reading(true), reading(false))).toBe(told);
    expect(difference(reading(false), reading(true))).toBe(told);
    expect(difference(reading(false), reading(false))).toBe('0 regions changed');
  });
  it.each([['stablehlo', 'reference'], ['home', 'here']])('never subtracts times of %s on %s', (consumer, machine) => {
    expect(difference(before, plan(consumer, machine, 0.45e-3, 'declined'))).toBe(
      `1 region changed, modelled 2.15 ms (home, reference) and 450 us (${consumer}, ${machine})`,
    );
  });
});

it('what a scope loses is what the regions inside it lose', () => {
  const region = (root: number, verdict: string, price?: number): object => ({ id: `r${root}`, key: `r${root}`, root, verdict, nodes: [root], winner: null, cost: price === undefined ? {} : { price: { value: price } } });
  const regions = [region(0, 'blocked', 3), region(1, 'blocked', 2), region(2, 'taken', 5)];
  const tree = { scopes: [{ parent: -1 }, { parent: 0 }], scopeOf: [0, 1, 1] } as unknown as Tree;
  const index = new PlanIndex({ ...plan('home', 'reference', 1), regions } as unknown as Plan, tree);
  expect([index.lost(0), index.lost(1)]).toEqual([5, 2]);
});
