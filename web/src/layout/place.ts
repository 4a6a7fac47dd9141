/** Lays out one open scope with dagre; the only file that knows which layout engine there is. */

import { Graph, layout } from '@dagrejs/dagre';

import type { Job, Placed, Route } from './job';
import { chains } from './chains';
import { type Band, connected, lanes, LONGEST_EDGE, type Skip } from './lanes';
import { FRAME_HEADER, FRAME_PADDING } from './measure';

const NODE_GAP = 36;
const RANK_GAP = 48;
const PORT_GAP = 26;
const CHAIN_GAP = 40;

/** Lays out all jobs, children first, so that an open scope's size is known to its parent. */
export function placeAll(jobs: Job[], known: Map<string, Placed> = new Map()): Placed[] {
  const placed: Placed[] = [];
  for (const job of jobs) {
    job.open.forEach((inner, item) => {
      if (inner < 0) return;
      job.width[item] = placed[inner].width;
      job.height[item] = placed[inner].height;
    });
    const signature = JSON.stringify([job.width, job.height, job.edges, job.incoming, job.outgoing, job.light]);
    let result = known.get(signature);
    if (!result) known.set(signature, (result = place(job)));
    placed.push({ ...result, scope: job.scope });
  }
  return placed;
}

/** What dagre places: an item, or a chain of them one above the other. */
interface Stack {
  items: number[];
  width: number;
  height: number;
}

function place(job: Job): Placed {
  const stacks = chains(job).map((items): Stack => ({
    items, width: Math.max(...items.map((item) => job.width[item])),
    height: items.reduce((sum, item) => sum + job.height[item], (items.length - 1) * CHAIN_GAP),
  }));
  const stackOf = new Array<number>(job.width.length);
  stacks.forEach(({ items }, stack) => items.forEach((item) => (stackOf[item] = stack)));
  const graph = laidOut(job, stacks, stackOf, NONE);
  const long = skipping(graph, job, stacks, stackOf);
  const placed = read(graph, job, stacks, stackOf, long);
  if (!long.size) return placed;
  // once more without them, so that no room is kept for them among the boxes; those that alone hold their ends in order stay
  const rest = job.edges.flatMap(([from, to], i): [number, number][] => (long.has(i) ? [] : [[stackOf[from], stackOf[to]]]));
  const left = new Set([...long].filter((i) => connected(rest, stackOf[job.edges[i][0]], stackOf[job.edges[i][1]])));
  if (!left.size) return placed;
  const freed = read(laidOut(job, stacks, stackOf, left), job, stacks, stackOf, long);
  return freed.width <= placed.width ? freed : placed;
}

const NONE: ReadonlySet<number> = new Set();

/** Has dagre place the stacks; edges of `left` are left out. */
function laidOut(job: Job, stacks: Stack[], stackOf: number[], left: ReadonlySet<number>): Graph {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: 'TB', nodesep: NODE_GAP, edgesep: 16, ranksep: RANK_GAP, ranker: 'network-simplex' });
  stacks.forEach(({ width, height }, stack) => graph.setNode(String(stack), { width, height }));
  // heavier between boxes than from ports and inputs: what only prepares an operand stands beside its reader, not at the border
  const light = new Set([...job.incoming, ...job.outgoing, ...job.light]);
  job.edges.forEach(([from, to], i) => {
    if (stackOf[from] === stackOf[to] || left.has(i)) return;
    const weight = light.has(from) || light.has(to) ? 1 : 4;
    graph.setEdge(String(stackOf[from]), String(stackOf[to]), { weight, minlen: 1 }, String(i));
  });
  // heavy edges from one top node hold all incoming values on the first rank; likewise at the bottom
  if (job.incoming.length) {
    graph.setNode('top', { width: 1, height: 1 });
    for (const item of job.incoming) graph.setEdge('top', String(stackOf[item]), { weight: 64, minlen: 1 }, 'top');
    for (const source of sourcesBeside(job)) graph.setEdge('top', String(stackOf[source]), { weight: 0, minlen: 2 }, 'top');
  }
  if (job.outgoing.length) {
    graph.setNode('bottom', { width: 1, height: 1 });
    for (const item of job.outgoing) graph.setEdge(String(stackOf[item]), 'bottom', { weight: 64, minlen: 1 }, 'bottom');
    for (const sink of sinksBeside(job)) graph.setEdge(String(stackOf[sink]), 'bottom', { weight: 0, minlen: 2 }, 'bottom');
  }
  layout(graph);
  return graph;
}

/** The ranks of the drawing, from the top: where their boxes stand. */
function levelsOf(graph: Graph, stacks: Stack[]): { bands: Band[]; levelOf: number[] } {
  const at = stacks.map((_, stack) => Math.round((graph.node(String(stack)) as { y: number }).y));
  const levels = [...new Set(at)].sort((a, b) => a - b);
  const bands = levels.map((): Band => [Infinity, -Infinity]);
  const levelOf = at.map((level) => levels.indexOf(level));
  stacks.forEach(({ height }, stack) => {
    const { y } = graph.node(String(stack)) as { y: number };
    const band = bands[levelOf[stack]];
    bands[levelOf[stack]] = [Math.min(band[0], y - height / 2), Math.max(band[1], y + height / 2)];
  });
  return { bands, levelOf };
}

/** The edges that pass more ranks than an edge may; the boxes of a chain are a rank each. */
function skipping(graph: Graph, job: Job, stacks: Stack[], stackOf: number[]): Set<number> {
  const { bands, levelOf } = levelsOf(graph, stacks);
  const depths = bands.map(() => 1);
  stacks.forEach(({ items }, stack) => (depths[levelOf[stack]] = Math.max(depths[levelOf[stack]], items.length)));
  const above = [0];
  for (const depth of depths) above.push(above[above.length - 1] + depth);
  return new Set(job.edges.flatMap(([from, to], i) => {
    const [a, b] = [levelOf[stackOf[from]], levelOf[stackOf[to]]];
    return b > a + 1 && above[b] - above[a + 1] >= LONGEST_EDGE ? [i] : [];
  }));
}

/** Items that nothing feeds: held below the incoming values, else they would share their rank. */
function sourcesBeside(job: Job): number[] {
  const fed = new Set(job.edges.map(([, to]) => to));
  return job.width.flatMap((_, item) => (fed.has(item) || job.incoming.includes(item) ? [] : [item]));
}

function sinksBeside(job: Job): number[] {
  const read = new Set(job.edges.map(([from]) => from));
  return job.width.flatMap((_, item) => (read.has(item) || job.outgoing.includes(item) ? [] : [item]));
}

function read(graph: Graph, job: Job, stacks: Stack[], stackOf: number[], long: ReadonlySet<number>): Placed {
  const count = job.width.length;
  const at = stacks.map((_, stack) => graph.node(String(stack)) as { x: number; y: number });
  const x = new Array<number>(count);
  const y = new Array<number>(count);
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  const { bands, levelOf } = levelsOf(graph, stacks);
  stacks.forEach(({ width, height }, stack) => {
    const { x: middle, y: level } = at[stack];
    left = Math.min(left, middle - width / 2);
    right = Math.max(right, middle + width / 2);
    top = Math.min(top, level - height / 2);
    bottom = Math.max(bottom, level + height / 2);
  });
  const band = (item: number): Band => bands[levelOf[stackOf[item]]];
  const bandAt = new Map(bands.map((band, level) => [Math.round(at[levelOf.indexOf(level)].y), band]));
  stacks.forEach(({ items, height }, stack) => {
    const [above, below] = band(items[0]);
    // beside a tall frame it stands at the foot of its rank, near its reader
    let edge = below - above > 2 * height ? below - height : at[stack].y - height / 2;
    for (const item of items) {
      x[item] = at[stack].x;
      y[item] = edge + job.height[item] / 2;
      edge += job.height[item] + CHAIN_GAP;
    }
  });
  const routes = job.edges.map(([from, to], i): Route => {
    if (long.has(i)) return []; // beside everything else, once that stands
    if (stackOf[from] === stackOf[to]) return [[x[from], y[from] + job.height[from] / 2, y[to] - job.height[to] / 2]];
    const points = graph.edge(String(stackOf[from]), String(stackOf[to]), String(i)).points as { x: number; y: number }[];
    const runs: Route = [[x[from], y[from] + job.height[from] / 2, band(from)[1]]];
    const down = at[stackOf[to]].y > at[stackOf[from]].y;
    for (const point of points.slice(1, -1)) {
      const [above, below] = bandAt.get(Math.round(point.y)) ?? [point.y, point.y];
      runs.push(down ? [point.x, above, below] : [point.x, below, above]);
      left = Math.min(left, point.x);
      right = Math.max(right, point.x);
    }
    runs.push([x[to], band(to)[0], y[to] - job.height[to] / 2]);
    return join(runs);
  });
  const skips = [...long].map((edge): Skip => {
    const [from, to] = job.edges[edge];
    return {
      edge, from: { x: x[from], bottom: y[from] + job.height[from] / 2, level: levelOf[stackOf[from]] },
      to: { x: x[to], top: y[to] - job.height[to] / 2, level: levelOf[stackOf[to]] },
    };
  });
  for (const [edge, route] of lanes(skips, bands, right)) {
    routes[edge] = route;
    right = Math.max(right, route[1][0]);
  }
  // ports need no rank of their own: their edges may start at the frame, above the first boxes
  const boxes = job.width.map((_, item) => item).filter((item) => !job.incoming.includes(item) && !job.outgoing.includes(item));
  if (boxes.length) {
    if (job.incoming.length) top = Math.min(...boxes.map((item) => y[item] - job.height[item] / 2)) - PORT_GAP;
    if (job.outgoing.length) bottom = Math.max(...boxes.map((item) => y[item] + job.height[item] / 2)) + PORT_GAP;
  }
  for (const route of routes)
    for (const run of route) {
      run[1] = Math.min(bottom, Math.max(top, run[1]));
      run[2] = Math.min(bottom, Math.max(top, run[2]));
    }
  const padX = FRAME_PADDING - left;
  const padY = FRAME_HEADER + FRAME_PADDING - top;
  for (let item = 0; item < count; item++) {
    x[item] += padX;
    y[item] += padY;
  }
  for (const route of routes)
    for (const run of route) {
      run[0] += padX;
      run[1] += padY;
      run[2] += padY;
    }
  return {
    scope: job.scope,
    width: right - left + 2 * FRAME_PADDING,
    height: bottom - top + FRAME_HEADER + 2 * FRAME_PADDING,
    x, y, routes,
  };
}

/** Joins runs that stand in one line, and leaves out a bend on the straight way between its neighbours. */
function join(runs: Route): Route {
  const kept: Route = [];
  for (const run of runs) {
    const last = kept[kept.length - 1];
    if (last && Math.abs(last[0] - run[0]) < 0.5) last[2] = run[2];
    else kept.push([...run]);
  }
  return kept;
}
