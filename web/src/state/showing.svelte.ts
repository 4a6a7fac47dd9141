/** What the panes show beside the selection: all of it stands in the address. */

import type { Span } from '../data/document';
import type { Tree } from '../data/scopes';
import { openNames, openOf } from './naming';
import type { View } from './url';

const TOP: ReadonlySet<number> = new Set([0]);

export class Showing {
  /** Which of the search's hits the reader stands at, from 0; -1 before the first. */
  hit = $state(-1);
  /** Whether regions are listed by what they were measured to take. */
  byMeasured = $state(false);
  /** The rows of the tree of scopes that are unfolded. */
  unfolded = $state.raw<ReadonlySet<number>>(TOP);
  /** Which of a region's kernels is shown, and whether as LLVM IR. */
  kernel = $state(0);
  generated = $state(false);
  /** Whether phases show only what differs from the one before. */
  differences = $state(false);
  /** Which texts of two compared plans stand beside each other. */
  texts = $state<'sources' | 'emitted' | null>(null);
  /** The file that the reader asked to see, and the place in it. */
  file = $state<string | null>(null);
  place = $state.raw<Span | null>(null);

  /** Lets the selection choose again what is shown of it. */
  followSelection(): void {
    [this.file, this.place, this.kernel, this.generated] = [null, null, 0, false];
  }

  view(tree: Tree | null): View {
    const { hit, place } = this;
    return {
      texts: this.texts ?? undefined,
      hit: hit < 0 ? undefined : hit + 1, order: this.byMeasured ? 'measured' : undefined, unfolded: openNames(tree, this.unfolded, TOP),
      kernel: this.kernel || undefined, generated: this.generated || undefined, differences: this.differences || undefined,
      file: place?.path ?? this.file ?? undefined, place: place ? [place.line, place.column, place.end_line, place.end_column] : undefined,
    };
  }

  restore(view: View, tree: Tree, paths: readonly string[]): void {
    this.hit = view.query && view.hit ? view.hit - 1 : -1;
    this.byMeasured = view.order === 'measured';
    this.texts = view.texts ?? null;
    this.unfolded = openOf(view.unfolded ?? [], tree, TOP);
    [this.kernel, this.generated, this.differences] = [view.kernel ?? 0, view.generated ?? false, view.differences ?? false];
    const path = view.file !== undefined && paths.includes(view.file) ? view.file : null;
    const [line, column, end_line, end_column] = view.place ?? [];
    this.place = path !== null && view.place ? { path, line, column, end_line, end_column } : null;
    this.file = this.place ? null : path;
  }
}
