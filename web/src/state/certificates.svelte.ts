/** What algebra says of the chosen region, where it is taken: asked of the server once it is chosen. */

import type { Certificate } from '../data/document';
import { KEPT } from '../parts/words';
import type { Viewer } from './viewer.svelte';

export class Certificates {
  shown = $state.raw<{ key: string; region: string; certificate: Certificate | null; error: string | null } | null>(null);

  constructor(private readonly viewer: Viewer) {}

  async load(): Promise<void> {
    const { region, skeleton, whatif, source, busy, state } = this.viewer;
    if (busy !== null) return; // the plan on the page is not yet the one that is asked for
    if (!source.live || !skeleton || region?.verdict !== 'taken') {
      this.shown = null;
      return;
    }
    const key = JSON.stringify([skeleton.id, skeleton.revision, whatif.options, region.id]);
    if (this.shown?.key === key) return;
    const asked = { key, region: region.id };
    if (state?.error) {
      if (this.shown?.region !== region.id) this.shown = { ...asked, certificate: null, error: KEPT };
      return;
    }
    this.shown = { ...asked, certificate: null, error: null };
    try {
      const certificate = await source.certificate(skeleton.id, skeleton.revision, region.id, whatif.options);
      if (this.shown?.key === key) this.shown = { ...asked, certificate, error: null };
    } catch (error) {
      if (this.shown?.key === key) this.shown = { ...asked, certificate: null, error: error instanceof Error ? error.message : String(error) };
    }
  }
}
