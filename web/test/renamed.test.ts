import { describe, expect, it } from 'vitest';

import type { Observation } from '../src/data/document';
import { numbered, renamed, reselected } from '../src/state/renamed';

describe('a question after a save', () => {
  const reading = (value: number, name: string | null = null): Observation => ({ value, name, kind: 'observe' }) as unknown as Observation;
  const was = { graph: 'g1', observations: [reading(3, 'hidden'), reading(5)] };
  const asked = { consumer: 'stablehlo', off: ['gelu'], observe: [7], ignore: [0], beside: [1] };

  it('is the same of the same program', () => {
    expect(renamed(asked, was, { ...was }, null)).toEqual({ kept: asked, lost: [] });
  });
  it('keeps of another one what has a name, and tells the rest', () => {
    const now = { graph: 'g2', observations: [reading(2, 'more'), reading(9, 'hidden'), reading(5)] };
    expect(renamed(asked, was, now, null)).toEqual({ kept: { consumer: 'stablehlo', off: ['gelu'], observe: [], ignore: [1], beside: [] }, lost: ['observing %7', 'recomputing %5'] });
  });
  it('takes no row for another where two bear one name, or none does', () => {
    const twice = { graph: 'g2', observations: [reading(2, 'hidden'), reading(9, 'hidden')] };
    expect(renamed({ ignore: [0] }, was, twice, null)).toEqual({ kept: { ignore: [], observe: undefined, beside: undefined }, lost: ['not observing hidden'] });
    expect(renamed({ ignore: [0] }, was, { graph: 'g2', observations: [] }, null).lost).toEqual(['not observing hidden']);
  });
  it('keeps values by where they stand now, and rows without a name by what they read', () => {
    const now = { graph: 'g2', observations: [reading(6), reading(9, 'hidden')] };
    const moved = [0, 1, 2, 9, 4, 6, 7, 8, null];
    expect(renamed({ ...asked, observe: [7, 8] }, was, now, moved)).toEqual({ kept: { ...asked, observe: [8], ignore: [1], beside: [0] }, lost: ['observing %8'] });
  });
  it('says when it names anything by number', () => {
    expect(numbered({ consumer: 'stablehlo', off: ['gelu'], observe: [] })).toBe(false);
    expect(numbered({ beside: [0] })).toBe(true);
  });
});

describe('a selection after a save', () => {
  const [old, now] = [{ graph: 'g1', boxes: null }, { graph: 'g2', boxes: null }];
  const move = { from: 'g1', to: 'g2', moved: [0, 1, 4, null] };
  it('is the op that was selected, wherever it stands now', () => {
    expect(reselected('o:2', [old], [now], [move])).toBe('o:4');
    expect(reselected('o:0', [old], [now], [move])).toBe('o:0');
    expect(reselected('o:2', [old], [old], [])).toBe('o:2');
  });
  it('is none where the op is gone, or it is not known where it is', () => {
    expect(reselected('o:3', [old], [now], [move])).toBeUndefined();
    expect(reselected('o:9', [old], [now], [move])).toBeUndefined();
    expect(reselected('o:0', [old], [now], [{ ...move, moved: null }])).toBeUndefined();
    expect(reselected('o:0', [{ graph: null, boxes: null }], [{ graph: null, boxes: null }], [])).toBeUndefined();
  });
  it('is a region or a scope by its key', () => {
    expect(reselected('r:gelu@block', [old], [now], [])).toBe('r:gelu@block');
    expect(reselected('s:block', [old], [now], [])).toBe('s:block');
  });
  it('is the same op in a drawing of two programs, by either of them', () => {
    const both = [{ graph: 'g1', boxes: [0, 2, 3] }, { graph: 'h', boxes: [0, 1, 3] }]; // 1 is of h alone, 2 of g1
    expect(reselected('o:1', [old], both, [])).toBe('o:2');
    expect(reselected('o:2', both, [old], [])).toBe('o:1');
    expect(reselected('o:1', both, [old], [])).toBeUndefined();
    expect(reselected('o:1', both, [now, { graph: 'h', boxes: [0, 2, 5] }], [])).toBe('o:2');
    // what a save takes away is what was there before it
    expect(reselected('o:3', both, [{ graph: 'g2', boxes: [0, 1] }, { graph: 'g1', boxes: [0, 1, 2] }], [{ from: 'g1', to: 'g2', moved: [0, 1, null] }])).toBe('o:2');
  });
});
