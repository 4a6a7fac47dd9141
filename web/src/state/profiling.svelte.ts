/** The profile laid over the plan: from the server, from a dropped file, or none. */

import type { Region } from '../data/document';
import { type Bench, parseBench, Profile } from '../data/profile';
import type { Viewer } from './viewer.svelte';

export class Profiling {
  bench = $state.raw<Bench | null>(null);
  /** Whether figures stand on the drawing. */
  drawn = $state(true);
  problem = $state<string | null>(null);
  private asked = '';
  private served = false;

  constructor(private readonly viewer: Viewer) {}

  /** Why the figures belong to nothing here; null where they do. */
  stale = $derived.by((): string | null => {
    const { bench, viewer } = this;
    if (!bench || !viewer.plan) return null;
    if (viewer.compared) return 'no figures are shown while two plans are compared';
    if (bench.digest !== viewer.plan.digest) return `it was measured on another program (${bench.target}, digest ${bench.digest.slice(0, 8)} instead of ${viewer.plan.digest.slice(0, 8)}), so its figures belong to no op here`;
    return null;
  });
  profile = $derived.by((): Profile | null => (this.bench && this.viewer.tree && this.viewer.plan && this.stale === null ? new Profile(this.bench, this.viewer.tree) : null));
  /** Whether the plan on the page takes what was taken when it was measured. */
  same = $derived.by((): boolean => (this.profile && this.viewer.plan ? this.profile.belongsTo(this.viewer.plan) : false));
  /** The profile where its figures are to be drawn. */
  shown = $derived.by((): Profile | null => (this.drawn ? this.profile : null));

  /** What a region was measured to take now: its kernel, else its recorded ops. */
  of(region: Region): number {
    return this.profile?.taken(region) ?? this.profile?.recorded(region) ?? 0;
  }

  /** Asks the server for the target's measurements, once a plan. */
  async fromServer(): Promise<void> {
    const { state, source } = this.viewer;
    if (!state || !source.live || this.asked === state.id) return;
    this.asked = state.id;
    if (this.served) this.close(); // it is another target's
    if (!state.profile) return;
    try {
      this.bench = await source.profile(state.id);
      this.served = true;
    } catch (error) {
      this.viewer.fail(error);
    }
  }

  async open(file: File): Promise<void> {
    try {
      this.bench = parseBench(await file.text(), file.name);
      [this.problem, this.drawn, this.served] = [null, true, false];
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
    }
  }

  close(): void {
    [this.bench, this.problem] = [null, null];
  }
}
