import { describe, expect, it } from 'vitest';

import { edgeLabels } from '../src/draw/edges';
import { marksOf, type Signs } from '../src/draw/marks';
import { overlaps, type Rect } from '../src/draw/sleeve';
import type { Segment } from '../src/layout/scene';
import { model } from './graphs';

const NONE: Signs = { change: null, observed: false, near: false, rivals: 0, returned: false, measured: '' };
const both = [false, true];
const every: Signs[] = both.flatMap((observed) => both.flatMap((near) => both.flatMap((returned) => [0, 12].flatMap((rivals) => ['', '4.1 us', '0.965 ns'].flatMap(
  (measured) => ([null, 'added', 'retyped'] as const).map((change): Signs => ({ change, observed, near, rivals, returned, measured })))))));

function apart(rects: Rect[]): void {
  rects.forEach((a, i) => rects.slice(i + 1).forEach((b) => expect(overlaps(a, b)).toBe(false)));
}

describe('the signs on a box', () => {
  it.each([[120, 40], [124, 58], [260, 40]])('of %d x %d lie on none of the others, whatever it bears', (width, height) => {
    for (const signs of every) {
      const marks = marksOf(width, height, signs);
      expect(Object.keys(marks).sort()).toEqual(Object.entries(signs).flatMap(([name, on]) => (on ? [name] : [])).sort());
      apart(Object.values(marks));
    }
  });
  it('stand at the corner that they have when they are alone', () => {
    expect(marksOf(120, 40, { ...NONE, change: 'retyped' }).change!.x).toBe(106);
    expect(marksOf(120, 40, { ...NONE, rivals: 1 }).rivals!.x).toBe(94);
    expect(marksOf(120, 40, { ...NONE, change: 'retyped', observed: true }).change!.x).toBe(89);
  });
});

describe("an edge's label", () => {
  const m = model([{ op: 'input', type: 'f32[8,64]' }, { op: 'exp', reads: [0], type: 'f32[8,64]' }]);
  const leaving = (...xs: number[]): Segment[] => xs.map((x): Segment => ({ from: 0, to: 1, values: [0], route: [[x, 40, 80]], arrow: true }) as unknown as Segment);
  const box = { x: 0, y: 0, width: 120, height: 40 };

  it('stands right of it where nothing is', () => {
    expect(edgeLabels(m, leaving(60), [box])[0]).toMatchObject({ x: 65, y: 44, text: 'f32[8,64]' });
  });
  it('keeps clear of every sign, and of the labels beside it', () => {
    for (const signs of every) {
      const marks = Object.values(marksOf(box.width, box.height, signs));
      const labels = edgeLabels(m, leaving(40, 60, 80), [box, ...marks]);
      for (const label of labels) for (const mark of marks) expect(overlaps(label, mark)).toBe(false);
      apart(labels);
      expect(edgeLabels(m, leaving(60), [box, ...marks])).toHaveLength(1);
    }
    apart(edgeLabels(m, leaving(60, 70), [box]));
  });
});
