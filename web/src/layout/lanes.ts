/** Edges that skip many ranks run in lanes beside the drawing instead of through it. */

import type { Route } from './job';

/** Ranks that an edge may span among the boxes. */
export const LONGEST_EDGE = 12;
const LANE_GAP = 14;

/** Where the boxes of each rank of the drawing stand, from the top. */
export type Band = [number, number];

/** An edge that skips ranks: where it leaves and arrives, and the ranks of both. */
export interface Skip {
  edge: number;
  from: { x: number; bottom: number; level: number };
  to: { x: number; top: number; level: number };
}

/** Whether a way leads from one to the other over the edges that are left: what holds them in order without the edge between. */
export function connected(edges: readonly (readonly [number, number])[], from: number, to: number): boolean {
  const next = new Map<number, number[]>();
  for (const [a, b] of edges) {
    const after = next.get(a);
    if (after) after.push(b);
    else next.set(a, [b]);
  }
  const [todo, seen] = [[from], new Set([from])];
  for (let at = todo.pop(); at !== undefined; at = todo.pop()) {
    if (at === to) return true;
    for (const other of next.get(at) ?? []) {
      if (seen.has(other)) continue;
      seen.add(other);
      todo.push(other);
    }
  }
  return false;
}

/** Routes edges right of `right`, those that pass nothing in common in one lane; each bends in the gaps after and before its ends. */
export function lanes(skips: readonly Skip[], bands: readonly Band[], right: number): Map<number, Route> {
  const ends: number[] = [];
  const routes = new Map<number, Route>();
  for (const { edge, from, to } of [...skips].sort((a, b) => a.from.level - b.from.level || b.to.level - a.to.level || a.edge - b.edge)) {
    const free = ends.findIndex((level) => level <= from.level);
    const lane = free < 0 ? ends.length : free;
    ends[lane] = to.level;
    const x = right + LANE_GAP * (lane + 1);
    routes.set(edge, [
      [from.x, from.bottom, bands[from.level][1]],
      [x, bands[from.level + 1][0], bands[to.level - 1][1]],
      [to.x, bands[to.level][0], to.top],
    ]);
  }
  return routes;
}
