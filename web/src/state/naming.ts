/** Names that survive a reload and an edit: a selection and what is open, by keys instead of numbers. */

import type { Model } from '../data/model';
import type { PlanIndex } from '../data/planning';
import type { Tree } from '../data/scopes';

export type Selection = { kind: 'region'; id: string } | { kind: 'op'; value: number } | { kind: 'scope'; scope: number };

/** `r:KEY`, `o:VALUE` or `s:KEY`. */
export function nameOf(selection: Selection | null, index: PlanIndex | null, tree: Tree | null): string | undefined {
  if (!selection) return undefined;
  if (selection.kind === 'region') return `r:${index?.byId.get(selection.id)?.key ?? selection.id}`;
  if (selection.kind === 'op') return `o:${selection.value}`;
  return `s:${tree?.scopes[selection.scope].key ?? ''}`;
}

export function selectionOf(name: string | undefined, index: PlanIndex | null, tree: Tree | null, model: Model | null): Selection | null {
  if (!name || !index || !model || !tree) return null;
  const rest = name.slice(2);
  if (name.startsWith('r:')) {
    const region = index.byKey.get(rest) ?? index.byId.get(rest);
    return region ? { kind: 'region', id: region.id } : null;
  }
  if (name.startsWith('o:')) return /^\d+$/.test(rest) && Number(rest) < model.count ? { kind: 'op', value: Number(rest) } : null;
  const scope = tree.scopes.find(({ key }) => key === rest);
  return scope ? { kind: 'scope', scope: scope.id } : null;
}

/** Keys of scopes that stand otherwise than at first: `+KEY` is open, `-KEY` is closed. */
export function openNames(tree: Tree | null, open: ReadonlySet<number>, first: ReadonlySet<number>): string[] {
  if (!tree) return [];
  const opened = [...open].filter((id) => !first.has(id)).map((id) => `+${tree.scopes[id].key}`);
  return [...opened, ...[...first].filter((id) => !open.has(id)).map((id) => `-${tree.scopes[id].key}`)];
}

export function openOf(names: readonly string[], tree: Tree, first: ReadonlySet<number>): Set<number> {
  const byKey = new Map(tree.scopes.map((scope) => [scope.key, scope]));
  const open = new Set(first);
  for (const name of names) {
    const scope = byKey.get(name.replace(/^[+-]/, ''));
    if (!scope) continue;
    if (name.startsWith('-')) open.delete(scope.id);
    else open.add(scope.id);
  }
  return open;
}

/** Which instance every fold shows. */
export function shownNames(tree: Tree | null, shown: ReadonlyMap<number, number>): Record<string, number> {
  return Object.fromEntries([...shown].map(([id, i]) => [tree!.scopes[id].key, i]));
}

export function shownOf(names: Record<string, number>, tree: Tree): Map<number, number> {
  const byKey = new Map(tree.scopes.map((scope) => [scope.key, scope]));
  return new Map(Object.entries(names).flatMap(([key, i]) => (byKey.has(key) ? [[byKey.get(key)!.id, i] as const] : [])));
}
