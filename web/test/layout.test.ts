import { describe, expect, it } from 'vitest';

import type { Model } from '../src/data/model';
import { buildTree, type Tree } from '../src/data/scopes';
import { overlaps, sleeve } from '../src/draw/sleeve';
import { placeAll } from '../src/layout/place';
import { assemble, type Box, plan, type Scene } from '../src/layout/scene';
import { model, random, type Row, tangled } from './graphs';

function draw(m: Model, tree: Tree, open: Iterable<number>): Scene {
  const planned = plan(m, tree, { scopes: new Set(open), shown: new Map() });
  return assemble(m, planned, placeAll(planned.jobs));
}

const cases = [1, 2, 3, 4].map((seed) => {
  const m = model(tangled(160, seed, seed % 2 === 0));
  const tree = buildTree(m);
  return { m, tree, scene: draw(m, tree, tree.scopes.map((scope) => scope.id)) };
});

describe.each(cases)('a drawing', ({ m, tree, scene }) => {
  it('has no two boxes over each other', () => {
    const solid = scene.boxes.filter((box) => box.kind !== 'frame');
    solid.forEach((a, i) => solid.slice(i + 1).forEach((b) => expect(overlaps(a, b)).toBe(false)));
  });

  it('keeps every box inside its frame', () => {
    for (const box of scene.boxes) {
      const scope = box.kind === 'op' ? tree.scopeOf[box.id] : tree.scopes[box.id].parent;
      const at = scene.boxOfScope.get(scope);
      if (at === undefined) continue;
      const frame = scene.boxes[at];
      expect(box.x).toBeGreaterThanOrEqual(frame.x);
      expect(box.y).toBeGreaterThanOrEqual(frame.y);
      expect(box.x + box.width).toBeLessThanOrEqual(frame.x + frame.width + 0.01);
      expect(box.y + box.height).toBeLessThanOrEqual(frame.y + frame.height + 0.01);
    }
  });

  it('leads no edge through a box', () => {
    for (const segment of scene.segments)
      for (const [x, top, bottom] of segment.route) {
        const run = { x: x - 1, y: Math.min(top, bottom) + 1, width: 2, height: Math.abs(bottom - top) - 2 };
        if (run.height <= 0) continue;
        const hit = scene.boxes.find((b) => b.kind !== 'frame' && overlaps(run, b));
        expect(hit, `${segment.from} -> ${segment.to}`).toBeUndefined();
      }
  });

  it('joins every read of a value to its producer', () => {
    const drawn = new Set(scene.segments.flatMap(({ values, to }) => (to !== null && to >= 0 ? values.map((v) => `${v}>${to}`) : [])));
    for (let value = 0; value < m.count; value++) {
      if (m.chip[value]) continue;
      for (const operand of m.operandsOf(value)) if (!m.chip[operand] && !m.hub[operand]) expect(drawn.has(`${operand}>${value}`)).toBe(true);
    }
  });

  it('is the same the second time', () => {
    expect(draw(m, tree, tree.scopes.map((scope) => scope.id))).toEqual(scene);
  });

  it('draws sleeves that cover no stranger', () => {
    const next = random(7);
    for (let round = 0; round < 12; round++) {
      const first = Math.floor(next() * (m.count - 12));
      const values = Array.from({ length: 10 }, (_, i) => first + i).filter((v) => scene.boxOfOp[v] >= 0);
      const members = values.map((v) => scene.boxes[scene.boxOfOp[v]]);
      const inside = new Set(values);
      const routes = scene.segments.filter((s) => s.from !== null && s.to !== null && inside.has(s.from) && inside.has(s.to)).map((s) => s.route);
      const drawn = sleeve(scene, members, routes, 9);
      if (!drawn) continue;
      const outline = polygons(drawn.path);
      for (const box of scene.boxes) {
        const centre: [number, number] = [box.x + box.width / 2, box.y + box.height / 2];
        if (box.kind === 'op') expect(holds(outline, centre), `op ${box.id}`).toBe(inside.has(box.id));
      }
    }
  });
});

it('opening a scope moves nothing inside others, and only its ancestors grow', () => {
  const m = model(tangled(200, 6, true));
  const tree = buildTree(m);
  const all = tree.scopes.map((scope) => scope.id);
  const inner = tree.scopes.find((scope) => scope.name === 'inner')!;
  const [closed, opened] = [draw(m, tree, all.filter((id) => id !== inner.id)), draw(m, tree, all)];
  const other = tree.scopes.findLast((scope) => scope.name === 'inner')!;
  const relative = (scene: Scene): number[][] => {
    const frame = scene.boxes[scene.boxOfScope.get(other.id)!];
    return scene.boxes.filter((b) => b.kind === 'op' && tree.scopeOf[b.id] === other.id).map((b) => [b.id, b.x - frame.x, b.y - frame.y]);
  };
  expect(relative(opened)).toEqual(relative(closed));
});

it('what was opened before leaves no trace in the drawing', () => {
  const m = model(tangled(200, 6, true));
  const tree = buildTree(m);
  const all = tree.scopes.map((scope) => scope.id);
  const ways = [[0], all, all.filter((id) => id % 2 === 0), all.slice(0, 4), [0]];
  for (const open of ways) expect(draw(m, tree, open)).toEqual(draw(m, buildTree(m), open));
});

describe('operands that are only prepared', () => {
  const rows: Row[] = [
    { op: 'input' }, { op: 'input' }, ...[0, 1, 2, 3].map((): Row => ({ op: 'slice', reads: [1] })),
    { op: 'conv', reads: [0], scope: ['body'] }, { op: 'add', reads: [6], scope: ['body'] }, { op: 'mul', reads: [7], scope: ['body'] },
    ...[2, 3, 4, 5].map((slice): Row => ({ op: 'reshape', reads: [slice] })),
    { op: 'norm', reads: [8, 9, 10, 11, 12] },
  ];
  const m = model(rows);
  const tree = buildTree(m);
  const scene = draw(m, tree, tree.scopes.map((scope) => scope.id));
  const box = (value: number): Box => scene.boxes[scene.boxOfOp[value]];

  it('stand in one column above their reader', () => {
    for (const slice of [2, 3, 4, 5]) {
      const [above, below] = [box(slice), box(slice + 7)];
      expect(above.x + above.width / 2).toBeCloseTo(below.x + below.width / 2);
      expect(below.y - above.y - above.height).toBeLessThan(48);
      expect(box(13).y - below.y - below.height).toBeLessThan(120);
    }
  });
  it('come from an input that is drawn inside its slices', () => {
    expect(m.hub[1]).toBe(1);
    expect(m.hub[0]).toBe(0);
  });
});

it('a golden drawing', () => {
  const m = model(tangled(24, 9, false));
  const tree = buildTree(m);
  const scene = draw(m, tree, [0]);
  expect(scene.boxes.map((b) => [b.kind, b.id, Math.round(b.x), Math.round(b.y), b.width, b.height])).toMatchSnapshot();
});

/** The corners of a rounded path: its curves' control points. */
function polygons(path: string): [number, number][][] {
  return path.split('M').filter(Boolean).map((loop) => [...loop.matchAll(/Q([-\d.]+),([-\d.]+)/g)].map((p): [number, number] => [Number(p[1]), Number(p[2])]));
}

function holds(loops: [number, number][][], [x, y]: [number, number]): boolean {
  let inside = false;
  for (const loop of loops)
    loop.forEach(([ax, ay], i) => {
      const [bx, by] = loop[(i + 1) % loop.length];
      if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
    });
  return inside;
}
