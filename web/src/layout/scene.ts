/** Turns the open part of the tree into layout jobs, and their answers into one drawing in absolute coordinates. */

import type { Model } from '../data/model';
import { childTowards, type Scope, type Tree } from '../data/scopes';
import type { Job, Placed, Route } from './job';
import { opSize, scopeSize } from './measure';

/** What the reader has opened; a fold shows one instance at a time. */
export interface Opened {
  scopes: ReadonlySet<number>;
  shown: ReadonlyMap<number, number>;
}

export interface Box {
  /** `frame` is an open scope, `scope` a closed one. */
  kind: 'op' | 'scope' | 'frame';
  /** A value, or a scope's id. */
  id: number;
  x: number;
  y: number;
  width: number;
  height: number;
  depth: number;
}

export interface Segment {
  values: number[];
  route: Route;
  /** Whether it ends at a box, not at a frame's border. */
  arrow: boolean;
  from: number | null;
  to: number | null;
}

export interface Scene {
  boxes: Box[];
  /** Index of an op's own box, or -1. */
  boxOfOp: Int32Array;
  boxOfScope: Map<number, number>;
  segments: Segment[];
  width: number;
  height: number;
}

interface Plan extends Job {
  /** Ops as they are, scopes as `~id`; null for a port. */
  items: (number | null)[];
  edgeValues: number[][];
  ports: Map<number, { incoming?: number; outgoing?: number }>;
}

export interface Jobs {
  jobs: Plan[];
}

/** The children that are drawn: a fold's shown instance, everything else's all. */
export function drawnChildren(scope: Scope, opened: Opened): number[] {
  return scope.kind === 'fold' ? [scope.children[Math.min(opened.shown.get(scope.id) ?? 0, scope.children.length - 1)]] : scope.children;
}

/** An open fold's shown instance is always open: closing it closes the fold. */
function isOpen(tree: Tree, child: number, opened: Opened): boolean {
  if (child >= 0) return false;
  const scope = tree.scopes[~child];
  return opened.scopes.has(scope.id) || tree.scopes[scope.parent]?.kind === 'fold';
}

export function plan(model: Model, tree: Tree, opened: Opened): Jobs {
  const jobs: Plan[] = [];
  const visit = (scope: Scope): number => {
    const children = drawnChildren(scope, opened);
    const open = children.map((child) => (isOpen(tree, child, opened) ? visit(tree.scopes[~child]) : -1));
    const all = closedJob(model, tree, scope, children);
    jobs.push({ ...all, open: all.open.map((none, item) => open[item] ?? none), width: [...all.width], height: [...all.height] });
    return jobs.length - 1;
  };
  visit(tree.scopes[0]);
  return { jobs };
}

/** Jobs of scopes whose children are all closed, by what is drawn of them: what is opened inside changes sizes alone. */
const closedJobs = new WeakMap<Tree, Map<string, Plan>>();

function closedJob(model: Model, tree: Tree, scope: Scope, children: number[]): Plan {
  let known = closedJobs.get(tree);
  if (!known) closedJobs.set(tree, (known = new Map()));
  const name = scope.kind === 'fold' ? `${scope.id} ${children[0]}` : `${scope.id}`;
  let job = known.get(name);
  if (!job) known.set(name, (job = jobOf(model, tree, scope, children)));
  return job;
}

function jobOf(model: Model, tree: Tree, scope: Scope, children: number[]): Plan {
  const items: (number | null)[] = [...children];
  const itemOf = new Map(children.map((child, item) => [child, item]));
  const job: Plan = {
    scope: scope.id, items, open: children.map(() => -1), width: [], height: [], incoming: [], outgoing: [], light: [], edges: [], edgeValues: [],
    ports: new Map(),
  };
  for (const child of children) {
    const [width, height] = child >= 0 ? opSize(model, child) : scopeSize(tree.scopes[~child]);
    job.width.push(width);
    job.height.push(height);
    if (child >= 0 && model.name(child) === 'input') job.light.push(job.width.length - 1);
  }
  const at = (value: number): number => {
    const child = childTowards(tree, scope.id, value);
    return child === null ? -1 : (itemOf.get(child) ?? -1);
  };
  const port = (value: number, side: 'incoming' | 'outgoing'): number => {
    const known = job.ports.get(value) ?? {};
    job.ports.set(value, known);
    if (known[side] === undefined) {
      known[side] = items.length;
      items.push(null);
      job.width.push(6);
      job.height.push(2);
      job.open.push(-1);
      job[side].push(known[side]);
    }
    return known[side];
  };
  const drawn = scope.kind === 'fold' ? tree.scopes[~children[0]] : scope;
  const edges = new Map<number, number>();
  const edge = (from: number, to: number, value: number): void => {
    const key = from * 1048576 + to;
    const row = edges.get(key);
    if (row !== undefined) {
      if (!job.edgeValues[row].includes(value)) job.edgeValues[row].push(value);
      return;
    }
    edges.set(key, job.edges.length);
    job.edges.push([from, to]);
    job.edgeValues.push([value]);
  };
  for (let p = drawn.begin; p < drawn.end; p++) {
    const value = tree.order[p];
    if (model.chip[value]) continue;
    const here = at(value);
    if (here < 0) continue;
    for (const operand of model.operandsOf(value)) {
      if (model.chip[operand] || model.hub[operand]) continue;
      const from = at(operand);
      if (from < 0) edge(port(operand, 'incoming'), here, operand);
      else if (from !== here) edge(from, here, operand);
    }
    if (scope.id === 0 || model.hub[value]) continue;
    if (model.usersOf(value).some((user) => at(user) < 0)) edge(here, port(value, 'outgoing'), value);
  }
  return job;
}

export function assemble(model: Model, { jobs }: Jobs, placed: Placed[]): Scene {
  const scene: Scene = {
    boxes: [], boxOfOp: new Int32Array(model.count).fill(-1), boxOfScope: new Map(), segments: [], width: 0, height: 0,
  };
  const root = placed[placed.length - 1];
  scene.width = root.width;
  scene.height = root.height;
  // ports' absolute x by job, side and value, so that outer segments meet the inner ones at the frame's border
  const portX = jobs.map(() => new Map<string, number>());
  const spread = (index: number, left: number, top: number, depth: number): void => {
    const job = jobs[index];
    const { x, y } = placed[index];
    for (const [value, sides] of job.ports) {
      if (sides.incoming !== undefined) portX[index].set(`i${value}`, left + x[sides.incoming]);
      if (sides.outgoing !== undefined) portX[index].set(`o${value}`, left + x[sides.outgoing]);
    }
    job.items.forEach((child, item) => {
      if (child === null) return;
      const inner = job.open[item];
      const box: Box = {
        kind: child >= 0 ? 'op' : inner >= 0 ? 'frame' : 'scope', id: child >= 0 ? child : ~child,
        x: left + x[item] - job.width[item] / 2, y: top + y[item] - job.height[item] / 2,
        width: job.width[item], height: job.height[item], depth,
      };
      if (child >= 0) scene.boxOfOp[child] = scene.boxes.length;
      else scene.boxOfScope.set(~child, scene.boxes.length);
      scene.boxes.push(box);
      if (inner >= 0) spread(inner, box.x, box.y, depth + 1);
    });
    segments(scene, job, placed[index], left, top, portX);
  };
  spread(jobs.length - 1, 0, 0, 0);
  return scene;
}

function segments(scene: Scene, job: Plan, placed: Placed, left: number, top: number, portX: Map<string, number>[]): void {
  const incoming = new Set(job.incoming);
  const outgoing = new Set(job.outgoing);
  job.edges.forEach(([from, to], row) => {
    const values = job.edgeValues[row];
    const openFrom = job.open[from];
    const openTo = job.open[to];
    const shifted = (): Route => {
      const route = placed.routes[row].map(([x, a, b]): [number, number, number] => [x + left, a + top, b + top]);
      if (incoming.has(from)) route[0][1] = top;
      if (outgoing.has(to)) route[route.length - 1][2] = top + placed.height;
      return route;
    };
    const ends = { from: job.items[from], to: job.items[to], arrow: !outgoing.has(to) && openTo < 0 };
    if (openFrom < 0 && openTo < 0) {
      scene.segments.push({ values, route: shifted(), ...ends });
      return;
    }
    for (const value of values) {
      const route = shifted();
      const start = openFrom < 0 ? undefined : portX[openFrom].get(`o${value}`);
      const end = openTo < 0 ? undefined : portX[openTo].get(`i${value}`);
      scene.segments.push({ values: [value], route: reach(route, start, end), ...ends });
    }
  });
}

/** Moves a route's ends sideways to the ports of open scopes. */
function reach(route: Route, start: number | undefined, end: number | undefined): Route {
  if (route.length === 1 && ((start ?? route[0][0]) !== route[0][0] || (end ?? route[0][0]) !== route[0][0])) {
    const [x, a, b] = route[0];
    const middle = (a + b) / 2;
    return [[start ?? x, a, Math.min(a, middle)], [end ?? x, Math.max(b, middle), b]];
  }
  if (start !== undefined) route[0][0] = start;
  if (end !== undefined) route[route.length - 1][0] = end;
  return route;
}
