/** Outlines of regions: a box where it holds members only, else a sleeve around the members and the edges between. */

import type { Box, Scene } from '../layout/scene';
import type { Route } from '../layout/job';

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Sleeve {
  path: string;
  bounds: Rect;
  /** Whether it is a plain box. */
  box: boolean;
  /** Where its label stands: the left end of its highest edge, and how wide that is. */
  head: { x: number; y: number; width: number };
}

/** A box of which less than this share is members' is mostly nothing: their edges are followed instead. */
const LEAST_HELD = 0.15;
const CORRIDOR = 6;
const RADIUS = 8;

/** Draws around `members` (boxes of the scene) and `routes` between them, as a box only where `boxed`; null where no member is drawn. */
export function sleeve(scene: Scene, members: Box[], routes: Route[], pad: number, boxed = true): Sleeve | null {
  if (!members.length) return null;
  const rects = members.map((box) => grow(box, pad));
  const bounds = hull(rects);
  const own = new Set(members);
  const highest = rects.reduce((a, b) => (b.y < a.y - 0.5 || (Math.abs(b.y - a.y) <= 0.5 && b.x < a.x) ? b : a));
  const head = { x: highest.x, y: highest.y, width: highest.width };
  const strangers = scene.boxes.some((box) => box.kind !== 'frame' && !own.has(box) && overlaps(bounds, box));
  const held = members.reduce((sum, box) => sum + box.width * box.height, 0) / (bounds.width * bounds.height);
  if (boxed && !strangers && held >= LEAST_HELD) return { path: rounded([corners(bounds)]), bounds, box: true, head: { x: bounds.x, y: bounds.y, width: bounds.width } };
  for (const route of routes) rects.push(...corridors(route, CORRIDOR));
  return { path: rounded(union(rects)), bounds: hull(rects), box: false, head };
}

function grow(box: Rect, pad: number): Rect {
  return { x: box.x - pad, y: box.y - pad, width: box.width + 2 * pad, height: box.height + 2 * pad };
}

export function hull(rects: Rect[]): Rect {
  const x = Math.min(...rects.map((r) => r.x));
  const y = Math.min(...rects.map((r) => r.y));
  const right = Math.max(...rects.map((r) => r.x + r.width));
  const bottom = Math.max(...rects.map((r) => r.y + r.height));
  return { x, y, width: right - x, height: bottom - y };
}

export function overlaps(a: Rect, b: Rect): boolean {
  return a.x < b.x + b.width && a.x + a.width > b.x && a.y < b.y + b.height && a.y + a.height > b.y;
}

/** Rectangles along a route: its vertical runs, and a jog in the middle of every gap, where no box stands. */
function corridors(route: Route, half: number): Rect[] {
  const rects: Rect[] = [];
  route.forEach(([x, top, bottom], i) => {
    const before = route[i - 1];
    const after = route[i + 1];
    const from = before ? (before[2] + top) / 2 - half : top;
    const to = after ? (bottom + after[1]) / 2 + half : bottom;
    rects.push({ x: x - half, y: Math.min(from, to), width: 2 * half, height: Math.abs(to - from) });
    if (after) {
      const middle = (bottom + after[1]) / 2;
      rects.push({ x: Math.min(x, after[0]) - half, y: middle - half, width: Math.abs(after[0] - x) + 2 * half, height: 2 * half });
    }
  });
  return rects;
}

type Point = [number, number];

function corners(r: Rect): Point[] {
  return [[r.x, r.y], [r.x + r.width, r.y], [r.x + r.width, r.y + r.height], [r.x, r.y + r.height]];
}

/** Traces the outline of a union of rectangles on the grid of their own coordinates. */
export function union(rects: Rect[]): Point[][] {
  const xs = [...new Set(rects.flatMap((r) => [r.x, r.x + r.width]))].sort((a, b) => a - b);
  const ys = [...new Set(rects.flatMap((r) => [r.y, r.y + r.height]))].sort((a, b) => a - b);
  const column = new Map(xs.map((x, i) => [x, i]));
  const row = new Map(ys.map((y, i) => [y, i]));
  const [wide, high] = [xs.length - 1, ys.length - 1];
  const filled = new Uint8Array(wide * high);
  for (const r of rects)
    for (let j = row.get(r.y)!; j < row.get(r.y + r.height)!; j++)
      filled.fill(1, j * wide + column.get(r.x)!, j * wide + column.get(r.x + r.width)!);
  const at = (i: number, j: number): number => (i < 0 || j < 0 || i >= wide || j >= high ? 0 : filled[j * wide + i]);
  // every boundary side once, with the inside on the right hand
  const next = new Map<number, number[]>();
  const key = (i: number, j: number): number => j * (wide + 1) + i;
  const side = (a: number, b: number): void => void (next.get(a)?.push(b) ?? next.set(a, [b]));
  for (let j = 0; j < high; j++)
    for (let i = 0; i < wide; i++) {
      if (!at(i, j)) continue;
      if (!at(i, j - 1)) side(key(i, j), key(i + 1, j));
      if (!at(i + 1, j)) side(key(i + 1, j), key(i + 1, j + 1));
      if (!at(i, j + 1)) side(key(i + 1, j + 1), key(i, j + 1));
      if (!at(i - 1, j)) side(key(i, j + 1), key(i, j));
    }
  const loops: Point[][] = [];
  for (const start of next.keys()) {
    while (next.get(start)!.length) {
      const loop: number[] = [];
      let current = start;
      do {
        loop.push(current);
        current = next.get(current)!.pop()!;
      } while (current !== start);
      const points = loop.map((k): Point => [xs[k % (wide + 1)], ys[Math.floor(k / (wide + 1))]]);
      loops.push(points.filter((p, i) => {
        const a = points[(i + points.length - 1) % points.length];
        const b = points[(i + 1) % points.length];
        return !((a[0] === p[0] && p[0] === b[0]) || (a[1] === p[1] && p[1] === b[1]));
      }));
    }
  }
  return loops;
}

/** Writes loops as an SVG path with rounded corners. */
export function rounded(loops: Point[][]): string {
  return loops
    .map((points) => {
      const parts = points.map((p, i) => {
        const a = points[(i + points.length - 1) % points.length];
        const b = points[(i + 1) % points.length];
        const r = Math.min(RADIUS, distance(a, p) / 2, distance(p, b) / 2);
        const from = towards(p, a, r);
        const to = towards(p, b, r);
        return `${i ? 'L' : 'M'}${fixed(from)}Q${fixed(p)} ${fixed(to)}`;
      });
      return `${parts.join('')}Z`;
    })
    .join('');
}

const distance = (a: Point, b: Point): number => Math.abs(a[0] - b[0]) + Math.abs(a[1] - b[1]);
const towards = (p: Point, q: Point, by: number): Point => [p[0] + Math.sign(q[0] - p[0]) * by, p[1] + Math.sign(q[1] - p[1]) * by];
const fixed = ([x, y]: Point): string => `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`;

/** Writes a route as an SVG path: straight in its runs, one S-curve a gap. */
export function routePath(route: Route): string {
  let path = `M${fixed([route[0][0], route[0][1]])}`;
  route.forEach(([x, top, bottom], i) => {
    if (i) {
      const [px, , pb] = route[i - 1];
      const middle = (pb + top) / 2;
      path += `C${fixed([px, middle])} ${fixed([x, middle])} ${fixed([x, top])}`;
    }
    if (bottom !== top || !i) path += `L${fixed([x, bottom])}`; // a line of no length has no direction, and its arrow any
  });
  return path;
}
