/** What is asked of the chosen region, where it is taken: asked again where the plan, the question or the region is another. */

import type { Options } from '../data/document';
import { KEPT, OTHER } from '../parts/words';
import type { Viewer } from './viewer.svelte';

export class AskedOfRegion<Answer> {
  shown = $state.raw<{ key: string; region: string; answer: Answer | null; error: string | null } | null>(null);

  constructor(
    private readonly viewer: Viewer,
    private readonly question: (id: string, revision: number, region: string, options: Options) => Promise<Answer>,
  ) {}

  async load(): Promise<void> {
    const { region, skeleton, whatif, source, busy, state, side } = this.viewer;
    if (busy !== null) return; // the plan on the page is not yet the one that is asked for
    if (!source.live || !skeleton || region?.verdict !== 'taken') {
      this.shown = null;
      return;
    }
    const key = JSON.stringify([skeleton.id, skeleton.revision, whatif.options, region.id, side === 'a']);
    if (this.shown?.key === key) return;
    const asked = { key, region: region.id };
    if (side === 'a') {
      this.shown = { ...asked, answer: null, error: OTHER };
      return;
    }
    if (state?.error) {
      if (this.shown?.region !== region.id) this.shown = { ...asked, answer: null, error: KEPT };
      return;
    }
    this.shown = { ...asked, answer: null, error: null };
    try {
      const answer = await this.question(skeleton.id, skeleton.revision, region.id, whatif.options);
      if (this.shown?.key === key) this.shown = { ...asked, answer, error: null };
    } catch (error) {
      if (this.shown?.key === key) this.shown = { ...asked, answer: null, error: error instanceof Error ? error.message : String(error) };
    }
  }
}
