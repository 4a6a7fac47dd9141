/** What the search and the filters leave: ops that hold, regions that are listed and walked, boxes that are dimmed. */

import type { Region, Verdict } from '../data/document';
import { byLoss } from '../data/figures';
import { chipsOf } from '../layout/measure';
import type { Box } from '../layout/scene';
import { parse, regionHolds, searchOps } from '../search/grammar';
import type { Viewer } from './viewer.svelte';

export class Finding {
  constructor(private readonly viewer: Viewer) {}

  search = $derived.by(() => {
    const { terms, faults } = parse(this.viewer.query);
    const { model, index, tree } = this.viewer;
    if (!terms.length || !model || !index || !tree) return { active: false, ops: [] as number[], hits: new Set<number>(), before: [0], faults };
    const ops = searchOps(model, terms, (value) => index.of(value));
    const hits = new Set(ops);
    const before = new Int32Array(tree.order.length + 1);
    tree.order.forEach((value, i) => (before[i + 1] = before[i] + (hits.has(value) ? 1 : 0)));
    return { active: true, ops, hits, before, faults, terms };
  });
  /** Whether a box shows or holds nothing of what is searched for. */
  dimmed(box: Box): boolean {
    const { active, hits, before } = this.search;
    if (!active) return false;
    if (box.kind === 'op') return !hits.has(box.id) && !chipsOf(this.viewer.model!, box.id).some((chip) => hits.has(chip.value));
    const { begin, end } = this.viewer.tree!.scopes[box.id];
    return before[end] === before[begin];
  }
  listed = $derived.by((): Region[] => {
    const { plan, filter, showing, profiling } = this.viewer;
    if (!plan) return [];
    const { search } = this;
    const shown = plan.regions.filter((region) => filter.has(region.verdict));
    const found = search.active
      ? shown.filter((r) => r.nodes.some((value) => search.hits.has(value)) || (search.terms ?? []).every((t) => regionHolds(t, r) !== t.negated))
      : shown;
    return showing.byMeasured && profiling.profile ? [...found].sort((a, b) => profiling.of(b) - profiling.of(a) || a.root - b.root) : byLoss(found);
  });

  /** The next region of a verdict in trace order, from the selection on; backwards with -1. */
  step(verdict: Verdict, direction: 1 | -1): void {
    const { viewer } = this;
    const regions = (viewer.plan?.regions ?? []).filter((region) => region.verdict === verdict).sort((a, b) => a.root - b.root);
    if (!regions.length) {
      viewer.status = `no ${verdict.replace('_', ' ')} region here`;
      return;
    }
    const at = viewer.region?.root ?? (viewer.selection?.kind === 'op' ? viewer.selection.value : direction > 0 ? -1 : Infinity);
    const next = direction > 0 ? regions.find((r) => r.root > at) : regions.findLast((r) => r.root < at);
    viewer.selectRegion((next ?? regions[direction > 0 ? 0 : regions.length - 1]).id);
  }
}
