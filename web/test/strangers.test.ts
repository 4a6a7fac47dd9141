import { describe, expect, it } from 'vitest';

import type { Plan, PlanState, Skeleton } from '../src/data/document';
import { buildTree } from '../src/data/scopes';
import { leftOut, unread, vetPlans, vetView } from '../src/state/strangers';
import { read } from '../src/state/url';
import { model } from './graphs';

describe('an address', () => {
  it.each([
    ['#sel=o:3&q=a,b&show=taken,blocked&open=%2Bx&at=1,2,0.5&side=a&hit=2&memory=1', []],
    ['#zzz=1', ['zzz=1']], ['#pane=zzz', ['pane=zzz']], ['#show=taken,zzz', ['show=taken,zzz']], ['#show=none', []], ['#side=c&texts=no', ['side=c', 'texts=no']],
    ['#observe=1,-2,x', ['observe=1,-2,x']], ['#at=0,0,0', ['at=0,0,0']], ['#zzz', ['zzz=']], ['#x=%3Cb%3E', ['x=<b>']], ['', []],
  ])('%s is read but for %j', (fragment, strange) => {
    expect(unread(fragment)).toEqual(strange);
  });

  const m = model([{ op: 'input' }, { op: 'exp', reads: [0], scope: ['block'] }, { op: 'neg', reads: [1] }]);
  const tree = buildTree(m);
  const { key } = tree.scopes[tree.scopeOf[1]];
  const here = { model: m, tree, skeleton: { machines: ['reference', 'a100'], paths: ['m.py'] } as unknown as Skeleton, plan: { observations: [{}] } as unknown as Plan };
  it('keeps what a plan has', () => {
    const view = read(`open=${encodeURIComponent(`-${key}`)}&tree=${encodeURIComponent(`+${key}`)}&consumer=stablehlo&fidelity=exact&machine=a100&observe=2&ignore=0&file=m.py`);
    expect(vetView(view, here)).toEqual({ view, strange: [] });
  });
  it('leaves out and names what it has not', () => {
    const { view, strange } = vetView(read(`open=%2B${encodeURIComponent(key)},-zzz&tree=%2Bnone&shown=zzz=2&consumer=zzz&fidelity=low&machine=mine&observe=1,3&ignore=1&beside=9&file=other.py`), here);
    expect(strange).toEqual(['shown=zzz=2', 'open=-zzz', 'tree=+none', 'consumer=zzz', 'fidelity=low', 'machine=mine', 'observe=3', 'ignore=1', 'beside=9', 'file=other.py']);
    expect(view).toMatchObject({ open: [`+${key}`], observe: [1] });
    expect([view.unfolded, view.shown, view.consumer, view.fidelity, view.machine, view.ignore, view.beside, view.file].every((one) => one === undefined)).toBe(true);
    expect(leftOut(strange)).toContain('consumer=zzz; fidelity=low');
  });
  it('is told each once, and never at the length of the page', () => {
    expect(leftOut(['plan=', 'plan=', 'open=x'])).toBe('Not here, and left out of the address: plan=; open=x');
    expect(leftOut(['a'.repeat(60_000)]).length).toBeLessThan(200);
    const many = leftOut(Array.from({ length: 5000 }, (_, k) => `open=+${k}`));
    expect(many).toContain('open=+11; 4988 more');
    expect(many).not.toContain('open=+12');
  });
  it('compares with a plan that there is', () => {
    const plans = [{ id: 'a', previous: true }, { id: 'b' }] as unknown as PlanState[];
    for (const compare of [undefined, 'b', 'a@previous']) expect(vetPlans({ compare }, plans, 'a').strange).toEqual([]);
    for (const compare of ['a', 'zzz', 'b@previous']) expect(vetPlans({ compare, side: 'a' }, plans, 'a')).toEqual({ view: {}, strange: [`compare=${compare}`] });
  });
});
