/**
 * The tree that the drawing opens and closes: module scopes where the tape has them, else the calls on the way to an
 * op; runs of identical blocks as one fold; long levels cut into sections. A function of the graph alone, never of the
 * plan, so that no what-if moves anything. Longer than most files because the steps share one tree.
 */

import type { Model } from './model';

export type ScopeKind = 'root' | 'scope' | 'call' | 'fold' | 'section';

export interface Scope {
  id: number;
  kind: ScopeKind;
  name: string;
  /** The name for people: `layer.3` where the name alone would be `3`. */
  title: string;
  parent: number;
  /** Ops as they are, scopes as `~id`, in trace order; chips stand with their first reader and are not children. */
  children: number[];
  /** The subtree's ops, chips included: `order[begin..end)`. */
  begin: number;
  end: number;
  /** Equal for scopes of equal structure. */
  hash: number;
  /** Survives a reload of an edited file where names do. */
  key: string;
  depth: number;
}

export interface Tree {
  scopes: Scope[];
  /** The scope that holds an op directly. */
  scopeOf: Int32Array;
  /** The box that shows an op: itself, or a chip's first reader. */
  owner: Int32Array;
  order: Int32Array;
}

/** Children a level may have before it is cut into sections: what the layout does in a tenth of a second. */
export const LARGEST_LEVEL = 90;
const SMALLEST_FOLD = 3;

interface Step {
  key: string;
  name: string;
  kind: 'scope' | 'call';
  /** The frame inside, by which a loop's next round is told from the last; -1 where there is none. */
  inner: number;
}

interface Draft {
  kind: ScopeKind;
  name: string;
  stepKey: string;
  first: number;
  left: boolean;
  children: (number | Draft)[];
}

export function buildTree(model: Model): Tree {
  const owner = owners(model);
  const draft = gather(model, owner);
  tidy(draft);
  return number(model, draft, owner);
}

/** The op whose box shows a value: a chip's first reader that is no chip. */
function owners(model: Model): Int32Array {
  const owner = new Int32Array(model.count);
  for (let i = model.count - 1; i >= 0; i--) owner[i] = model.chip[i] ? owner[model.users[model.userStart[i]]] : i;
  return owner;
}

function gather(model: Model, owner: Int32Array): Draft {
  const root = draftOf('root', '', []);
  const stack: Draft[] = [root];
  const chains = new Map<number, Step[]>();
  for (let i = 0; i < model.count; i++) {
    if (owner[i] !== i) continue;
    const location = model.graph.ops.location[i];
    let chain = chains.get(location);
    if (!chain) chains.set(location, (chain = chainOf(model, location)));
    if (model.name(i) === 'input') chain = [];
    let depth = 0;
    while (depth < chain.length && depth + 1 < stack.length && continues(stack[depth + 1], chain[depth])) depth++;
    stack.length = depth + 1;
    for (; depth < chain.length; depth++) {
      const { kind, name, key, inner } = chain[depth];
      const child: Draft = { kind, name, stepKey: key, first: inner, left: false, children: [] };
      stack[depth].children.push(child);
      stack.push(child);
    }
    stack[stack.length - 1].children.push(i);
  }
  return root;
}

/** Whether an op still belongs to this instance; one whose first place comes back after others has begun its next round. */
function continues(scope: Draft, step: Step): boolean {
  if (scope.stepKey !== step.key) return false;
  if (step.inner < 0) return true;
  if (step.inner !== scope.first) scope.left = true;
  return !(scope.left && step.inner === scope.first);
}

/** The scopes around a location, outermost first: the tape's own, else the calls; then the library formula it is part of. */
function chainOf(model: Model, location: number): Step[] {
  const [scope, frames] = model.graph.locations[location];
  const names = model.graph.scopes[scope];
  const kind = (row: number): string => model.graph.frames[row][6];
  const user = frames.filter((row) => kind(row) === 'user').reverse();
  const steps = names.length ? named(names, user) : called(model, user);
  const library = frames.findLastIndex((row) => kind(row) === 'library');
  if (library >= 0) {
    const fn = model.graph.frames[frames[library]][5];
    const site = frames[library + 1] ?? -1;
    steps.push({ key: `c${site}>${fn}`, name: model.graph.functions[fn], kind: 'call', inner: frames[library] });
  }
  return steps;
}

/** A scope may be a function that a loop calls: where scopes and calls run alike, the frame inside tells the rounds apart. */
function named(names: string[], user: number[]): Step[] {
  const alike = user.length - 1 === names.length;
  return names.map((name, i) => ({ key: `s${i}/${name}`, name, kind: 'scope', inner: alike ? user[i + 1] : -1 }));
}

function called(model: Model, user: number[]): Step[] {
  return user.slice(1).flatMap((row, i): Step[] => {
    const fn = model.graph.frames[row][5];
    const name = model.graph.functions[fn];
    if (name.endsWith('>')) return []; // a comprehension is no block of its own
    return [{ key: `c${user[i]}>${fn}`, name: name.replace(/\.(__call__|forward)$/, ''), kind: 'call', inner: row }];
  });
}

/** Dissolves scopes of one op, joins a scope with its only child, folds runs, cuts long levels. */
function tidy(scope: Draft): void {
  const children: (number | Draft)[] = [];
  for (const child of scope.children) {
    if (typeof child === 'number') {
      children.push(child);
      continue;
    }
    tidy(child);
    if (child.children.length <= 1 && typeof child.children[0] === 'number') children.push(...child.children);
    else children.push(child);
  }
  scope.children = children;
  const only = children[0];
  if (children.length === 1 && typeof only !== 'number' && scope.kind !== 'root' && only.kind !== 'fold') {
    scope.name = `${scope.name}.${only.name}`;
    scope.children = only.children;
  }
}

function number(model: Model, draft: Draft, owner: Int32Array): Tree {
  const chips: number[][] = [];
  for (let i = 0; i < model.count; i++) if (owner[i] !== i) (chips[owner[i]] ??= []).push(i);
  const order = new Int32Array(model.count);
  const position = new Int32Array(model.count);
  let placed = 0;
  const place = (node: Draft): void => {
    for (const child of node.children) {
      if (typeof child !== 'number') {
        place(child);
        continue;
      }
      for (const value of [...(chips[child] ?? []), child]) {
        position[value] = placed;
        order[placed++] = value;
      }
    }
  };
  place(draft);
  const hashes = new Map<Draft, number>();
  let cursor = 0;
  const measure = (node: Draft): void => {
    const begin = cursor;
    for (const child of node.children) {
      if (typeof child !== 'number') measure(child);
      else cursor += 1 + (chips[child]?.length ?? 0);
    }
    hashes.set(node, structure(model, order, position, begin, cursor));
  };
  measure(draft);
  fold(draft, hashes);
  cut(draft, hashes);

  const scopes: Scope[] = [];
  const scopeOf = new Int32Array(model.count);
  const seen = new Map<string, number>();
  const finish = (node: Draft, parent: number, depth: number): number => {
    const id = scopes.length;
    if (parent >= 0 && scopes[parent].kind === 'fold' && scopes[parent].name === node.name) node.name = `${node.name} ${scopes[parent].children.length}`;
    const path = parent < 0 ? '' : `${scopes[parent].key}/${node.name}`;
    const again = seen.get(path) ?? 0;
    seen.set(path, again + 1);
    const scope: Scope = {
      id, kind: node.kind, name: node.name, title: titled(node.name, parent < 0 ? '' : scopes[parent].title), parent, children: [], begin: cursor, end: cursor,
      hash: hashes.get(node)!, key: again ? `${path}~${again}` : path, depth,
    };
    scopes.push(scope);
    for (const child of node.children) {
      if (typeof child === 'number') {
        scope.children.push(child);
        scopeOf[child] = id;
        for (const chip of chips[child] ?? []) scopeOf[chip] = id;
        cursor += 1 + (chips[child]?.length ?? 0);
      } else scope.children.push(~finish(child, id, depth + 1));
    }
    scope.end = cursor;
    return id;
  };
  cursor = 0;
  finish(draft, -1, 0);
  return { scopes, scopeOf, owner, order };
}

/** Hashes ops, types, attributes and the links inside an interval; whatever comes from outside counts alike. */
function structure(model: Model, order: Int32Array, position: Int32Array, begin: number, end: number): number {
  const { ops } = model.graph;
  let hash = 0x811c9dc5;
  const mix = (word: number): void => {
    hash = Math.imul(hash ^ word, 0x01000193);
    hash = (hash << 13) | (hash >>> 19);
  };
  for (let p = begin; p < end; p++) {
    const value = order[p];
    mix(ops.name[value]);
    mix(ops.type[value] + 1000);
    if (model.name(value) !== 'parameter') mix(ops.attributes[value] + 2000);
    for (const operand of model.operandsOf(value)) {
      const at = position[operand];
      mix(at >= begin && at < end ? p - at : -1);
    }
  }
  return hash >>> 0;
}

function fold(scope: Draft, hashes: Map<Draft, number>): void {
  const children: (number | Draft)[] = [];
  for (let i = 0; i < scope.children.length; ) {
    const child = scope.children[i];
    let j = i + 1;
    if (typeof child !== 'number') {
      const alike = (other: number | Draft): boolean =>
        typeof other !== 'number' && hashes.get(other) === hashes.get(child) && stem(other.name) === stem(child.name);
      while (j < scope.children.length && alike(scope.children[j])) j++;
      for (let k = i; k < j; k++) fold(scope.children[k] as Draft, hashes);
    }
    const run = scope.children.slice(i, j);
    if (typeof child !== 'number' && run.length >= SMALLEST_FOLD) {
      const folded = draftOf('fold', stem(child.name), run);
      hashes.set(folded, (hashes.get(child)! ^ run.length) >>> 0);
      children.push(folded);
    } else children.push(...run);
    i = j;
  }
  scope.children = children;
}

/** Numbers and folds of numbers borrow the name of what holds them. */
function titled(name: string, parent: string): string {
  const around = parent.split('.').filter((part) => !/^\d+$/.test(part)).at(-1) ?? '';
  if (name === '[]') return around || name;
  return /^\d+$/.test(name) && around ? `${around}.${name}` : name;
}

/** `layer12` and `layer13` are both `layer`; `3` stays `3`. */
export function stem(name: string): string {
  const bare = name.replace(/[._-]?\d+$/, '');
  return bare || '[]';
}

/** Cuts a level that has too many children into sections of nearly equal length, and those again. */
function cut(scope: Draft, hashes: Map<Draft, number>): void {
  for (const child of scope.children) if (typeof child !== 'number') cut(child, hashes);
  if (scope.kind === 'fold') return; // shows one instance at a time
  while (scope.children.length > LARGEST_LEVEL) {
    const pieces = Math.ceil(scope.children.length / LARGEST_LEVEL);
    const sections: Draft[] = [];
    for (let i = 0; i < pieces; i++) {
      const [from, to] = [i, i + 1].map((k) => Math.round((k * scope.children.length) / pieces));
      const section = draftOf('section', `part ${i + 1} of ${pieces}`, scope.children.slice(from, to));
      hashes.set(section, i);
      sections.push(section);
    }
    scope.children = sections;
  }
}

function draftOf(kind: ScopeKind, name: string, children: (number | Draft)[]): Draft {
  return { kind, name, stepKey: '', first: -1, left: false, children };
}

/** The children of `scope` on the way to an op: an op, `~scope`, or null where the op is outside. */
export function childTowards(tree: Tree, scope: number, value: number): number | null {
  let at = tree.scopeOf[value];
  if (at === scope) return tree.owner[value];
  while (at >= 0) {
    const parent = tree.scopes[at].parent;
    if (parent === scope) return ~at;
    at = parent;
  }
  return null;
}

/** The scopes around an op, outermost first, the root left out. */
export function enclosing(tree: Tree, value: number): number[] {
  const path: number[] = [];
  for (let at = tree.scopeOf[value]; at > 0; at = tree.scopes[at].parent) path.unshift(at);
  return path;
}
