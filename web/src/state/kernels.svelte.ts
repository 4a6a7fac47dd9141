/** What runs the chosen region: asked of the server when the pane is open, since it may have to be compiled first. */

import type { KernelListing } from '../data/document';
import { KEPT, reasonOf } from '../parts/words';
import type { Viewer } from './viewer.svelte';

export class Kernels {
  shown = $state.raw<{ key: string; region: string; listing: KernelListing | null; error: string | null } | null>(null);

  constructor(private readonly viewer: Viewer) {}

  /** Why the chosen region has no kernel to show, in the plan's words where it has some; null where it has one. */
  missing = $derived.by((): string | null => {
    const { region, plan } = this.viewer;
    if (!region) return 'Select a region that is taken.';
    if (region.verdict !== 'taken') return reasonOf(region);
    if (plan?.consumer !== 'home') return `${reasonOf(region)}; what is emitted stands under Emitted StableHLO`;
    if (!this.viewer.source.live) return 'An exported page holds no kernels; open the target with topos view.';
    return null;
  });

  async load(): Promise<void> {
    const { region, skeleton, whatif, source, busy, state } = this.viewer;
    if (!skeleton || !region || this.missing !== null || busy !== null) return; // busy: the plan on the page is not yet the one that is asked for
    const key = JSON.stringify([skeleton.id, skeleton.revision, whatif.options, region.id]);
    if (this.shown?.key === key) return;
    const asked = { key, region: region.id };
    if (state?.error) {
      if (this.shown?.region !== region.id) this.shown = { ...asked, listing: null, error: KEPT };
      return;
    }
    this.shown = { ...asked, listing: null, error: null };
    try {
      const listing = await source.kernels(skeleton.id, skeleton.revision, region.id, whatif.options);
      if (this.shown?.key === key) this.shown = { ...asked, listing, error: null };
    } catch (error) {
      if (this.shown?.key === key) this.shown = { ...asked, listing: null, error: error instanceof Error ? error.message : String(error) };
    }
  }
}
