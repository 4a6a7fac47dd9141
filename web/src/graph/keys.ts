/** Walking the drawing by keys: to producers and readers, to neighbours, into scopes and out of them. */

import type { Viewer } from '../state/viewer.svelte';

/** Moves the selection; false where the key means nothing here. */
export function step(viewer: Viewer, key: string): boolean {
  const { model, tree, scene, selection } = viewer;
  if (!model || !tree || !scene) return false;
  const here = selection?.kind === 'op' ? tree.owner[selection.value] : selection?.kind === 'region' ? tree.owner[viewer.region?.root ?? 0] : null;
  const scope = selection?.kind === 'scope' ? selection.scope : null;
  switch (key) {
    case 'ArrowDown':
    case 'ArrowUp': {
      if (scope !== null) return sideways(viewer, key === 'ArrowDown' ? 1 : -1);
      if (here === null) return sideways(viewer, 1);
      const next = key === 'ArrowDown' ? [...model.usersOf(here)].find((v) => !model.chip[v]) : [...model.operandsOf(here)].find((v) => !model.chip[v]);
      if (next !== undefined) viewer.selectOp(next);
      return true;
    }
    case 'ArrowRight': return sideways(viewer, 1);
    case 'ArrowLeft': return sideways(viewer, -1);
    case '[': {
      const parent = scope !== null ? tree.scopes[scope].parent : here !== null ? tree.scopeOf[here] : -1;
      if (parent > 0) {
        viewer.selectScope(parent);
        viewer.focusRequest++;
      }
      return true;
    }
    case ']': {
      if (scope === null) return true;
      if (!viewer.open.has(scope)) void viewer.toggle(scope).then(() => viewer.selectOp(tree.order[tree.scopes[scope].begin]));
      else viewer.selectOp(tree.order[tree.scopes[scope].begin]);
      return true;
    }
    case 'Enter': {
      if (scope === null) return false;
      void viewer.toggle(scope);
      return true;
    }
    default: return false;
  }
}

/** The next box of the same scope in trace order. */
function sideways(viewer: Viewer, direction: 1 | -1): boolean {
  const { tree, scene, selection } = viewer;
  if (!tree || !scene) return false;
  const child = selection?.kind === 'scope' ? ~selection.scope : selection?.kind === 'op' ? tree.owner[selection.value] : selection?.kind === 'region' ? tree.owner[viewer.region?.root ?? 0] : null;
  const parent = child === null ? 0 : child < 0 ? tree.scopes[~child].parent : tree.scopeOf[child];
  const siblings = tree.scopes[Math.max(0, parent)].children;
  const at = child === null ? -1 : siblings.indexOf(child);
  const next = siblings[Math.min(siblings.length - 1, Math.max(0, at + direction))];
  if (next === undefined) return true;
  if (next >= 0) viewer.selectOp(next);
  else {
    viewer.selectScope(~next);
    const above = tree.scopes[parent];
    if (above?.kind === 'fold') void viewer.showInstance(parent, siblings.indexOf(next)).then(() => viewer.focusRequest++);
    else viewer.focusRequest++;
  }
  return true;
}
