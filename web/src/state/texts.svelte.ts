/** The texts beside the drawing: sources as they were traced, and what the plan emits. */

import type { Span } from '../data/document';
import { KEPT } from '../parts/words';
import type { Viewer } from './viewer.svelte';

export class Texts {
  sources = $state.raw<ReadonlyMap<number, string>>(new Map());
  emitted = $state.raw<{ key: string; text: string | null; error: string | null } | null>(null);

  constructor(private readonly viewer: Viewer) {}

  /** The file that the Source pane shows: the reader's choice, else the selection's. */
  shownPath = $derived.by((): string => {
    const { region, selection, model, skeleton } = this.viewer;
    const { place, file } = this.viewer.showing;
    if (place) return place.path;
    if (file !== null) return file;
    if (region) return region.path;
    if (selection?.kind === 'op') return model?.span(selection.value)?.path ?? '';
    return skeleton?.target.replace(/:[^:]*$/, '') ?? '';
  });

  /** Forgets what belongs to another trace; what the last good plan emits stays while what was saved after it does not record. */
  reset(): void {
    this.sources = new Map();
    if (!this.viewer.state?.error) this.emitted = null;
  }

  showFile(path: string): void {
    [this.viewer.showing.place, this.viewer.showing.file] = [null, path];
  }

  showPlace(span: Span): void {
    this.viewer.showing.place = { path: span.path, line: span.line, column: span.column, end_line: span.end_line, end_column: span.end_column };
  }

  async load(path: number): Promise<void> {
    try {
      await this.get(path);
    } catch (error) {
      this.viewer.fail(error);
    }
  }

  /** The files of the plan that is shown. */
  paths = $derived.by((): readonly string[] => {
    const { compared, side, skeleton } = this.viewer;
    return compared && side === 'a' ? compared.pathsBefore : (skeleton?.paths ?? []);
  });

  async get(path: number): Promise<string> {
    const name = this.version();
    const known = this.sources.get(path);
    if (known !== undefined) return known;
    const [id, previous] = name.split('@');
    const text = await this.viewer.source.text(id, path, previous !== undefined);
    if (name === this.version()) this.sources = new Map(this.sources).set(path, text);
    return text;
  }

  /** The plan whose texts are shown, before its last save with `@previous`. */
  private version(): string {
    const { compared, side, planId } = this.viewer;
    return compared && side === 'a' ? compared.name : planId!;
  }

  /** A link that opens the user's editor at a place, where the server told its folder. */
  editorLink(span: Span): string | null {
    const { skeleton, source, settings } = this.viewer;
    return skeleton?.root && source.live ? settings.editorLink(skeleton.root, span) : null;
  }

  /** The last op recorded at a line: what the line's expression came to. */
  opAtLine(path: string, line: number): number | null {
    const { viewer } = this;
    const { model } = viewer;
    if (!model) return null;
    for (let value = model.count - 1; value >= 0; value--) {
      if (viewer.valueOf(value) === null) continue; // its line is one of the other plan's text
      const span = model.span(value);
      if (span && span.path === path && span.line <= line && line <= span.end_line) return value;
    }
    return null;
  }

  async loadEmitted(): Promise<void> {
    const { skeleton, whatif, source, compared, side, state } = this.viewer;
    if (!skeleton) return;
    if (compared && side === 'a') {
      this.emitted = { key: '', text: null, error: 'Under Changes, Side by side shows the StableHLO of both plans.' };
      return;
    }
    const key = JSON.stringify([skeleton.id, skeleton.revision, whatif.options]);
    if (this.emitted?.key === key) return;
    if (state?.error) {
      if (!this.emitted?.key) this.emitted = { key, text: null, error: KEPT };
      return;
    }
    this.emitted = { key, text: null, error: null };
    try {
      const text = await source.emitted(skeleton.id, skeleton.revision, { ...whatif.options, consumer: 'stablehlo' });
      if (this.emitted?.key === key) this.emitted = { key, text, error: null };
    } catch (error) {
      if (this.emitted?.key === key) this.emitted = { key, text: null, error: error instanceof Error ? error.message : String(error) };
    }
  }
}
