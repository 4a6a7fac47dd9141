import { describe, expect, it } from 'vitest';

import { buildTree } from '../src/data/scopes';
import { LONGEST_EDGE } from '../src/layout/lanes';
import { FRAME_PADDING } from '../src/layout/measure';
import { placeAll } from '../src/layout/place';
import { assemble, plan, type Box, type Scene } from '../src/layout/scene';
import { model, type Row } from './graphs';

/** A chain in which the first op is read again behind `between` others, and at each step something else too, so that no chain moves as one. */
function skip(between: number): Row[] {
  const rows: Row[] = [{ op: 'input' }, { op: 'exp', reads: [0] }];
  for (let i = 0; i < between; i++) rows.push({ op: 'mul', reads: i > 1 ? [rows.length - 1, rows.length - 2] : [rows.length - 1] });
  rows.push({ op: 'add', reads: [rows.length - 1, 1] });
  return rows;
}

function draw(rows: Row[]): { scene: Scene; last: number } {
  const m = model(rows);
  const planned = plan(m, buildTree(m), { scopes: new Set([0]), shown: new Map() });
  return { scene: assemble(m, planned, placeAll(planned.jobs)), last: rows.length - 1 };
}

const right = (scene: Scene): number => Math.max(...scene.boxes.map((box: Box) => box.x + box.width));

describe('an edge over many ranks', () => {
  it.each([LONGEST_EDGE - 1, LONGEST_EDGE, LONGEST_EDGE + 1])('runs beside the drawing where it passes more than twelve: %d', (between) => {
    const { scene, last } = draw(skip(between));
    const edge = scene.segments.find(({ from, to }) => from === 1 && to === last)!;
    const beside = edge.route.some(([x]) => x > right(scene));
    expect(beside).toBe(between >= LONGEST_EDGE);
  });

  it('takes no more room than its lane beside the boxes', () => {
    const { scene } = draw(skip(20));
    const left = Math.min(...scene.boxes.map((box) => box.x));
    expect(scene.width).toBeLessThanOrEqual(right(scene) - left + 2 * FRAME_PADDING + 14);
  });

  it('crosses no box and stays inside the drawing', () => {
    const { scene } = draw([...skip(15), ...skip(15).map((row) => ({ ...row, reads: row.reads?.map((value) => value + 18) }))]);
    for (const { route } of scene.segments)
      for (const [x, top, bottom] of route) {
        expect(x).toBeLessThan(scene.width);
        expect(scene.boxes.some((box) => x > box.x && x < box.x + box.width && Math.min(top, bottom) < box.y + box.height - 1 && Math.max(top, bottom) > box.y + 1)).toBe(false);
      }
  });
});
