/** What of the page's state a link must bring back. */

import { openNames, shownNames } from './naming';
import type { View } from './url';
import type { Viewer } from './viewer.svelte';

export function viewOf(viewer: Viewer): View {
  const { planId, tree, open, shown, firstOpen, showing, whatif, query, filter, compared, side, pane, memory, phases, candidates, profiling, camera } = viewer;
  const { consumer, fidelity, machine, observe, ignore, beside, off } = whatif.options;
  return {
    plan: planId ?? undefined, selection: viewer.selectionText(), open: openNames(tree, open, firstOpen), shown: shownNames(tree, shown),
    ...showing.view(tree), consumer, fidelity, machine, observe, ignore, beside, off, query: query || undefined,
    filter: filter.size === 4 ? undefined : [...filter], compare: compared?.name, side: side === 'both' ? undefined : side,
    pane: pane ?? undefined, memory: memory || undefined, phases: phases || undefined, candidates: candidates || undefined,
    unmeasured: !profiling.drawn || undefined,
    camera: [camera.x, camera.y, camera.k],
  };
}

/** Reads everything that a view is made of, so that an effect follows it, and makes nothing of it. */
export function touch(viewer: Viewer): void {
  const { planId, selection, open, shown, query, filter, compared, side, camera, pane, memory, phases, candidates } = viewer;
  void [planId, selection, open, shown, query, filter, compared, side, camera, pane, memory, phases, candidates, viewer.whatif.options, viewer.profiling.drawn];
  void viewer.showing.view(null);
  void viewer.showing.unfolded;
}
