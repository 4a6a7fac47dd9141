/** Where the signs on a box's edge stand: none lies on another, and what is written beside boxes keeps clear of them. */

import { markOf } from '../data/comparison';
import { seconds } from '../data/figures';
import type { Box } from '../layout/scene';
import type { Viewer } from '../state/viewer.svelte';
import type { Rect } from './sleeve';

/** What an op's box bears besides its texts. */
export interface Signs {
  /** In a comparison. */
  change: 'added' | 'retyped' | null;
  observed: boolean;
  /** Whether a near miss has its root here. */
  near: boolean;
  /** How many more candidates want this op. */
  rivals: number;
  returned: boolean;
  /** The time that was measured on the op alone; empty where none was. */
  measured: string;
}

export type Marks = Partial<Record<keyof Signs, Rect>>;

export const RING = 18;
const CHANGE = { width: 18, height: 16 };
const CROSS = 16;
export const RIVALS = { width: 18, height: 14 };
export const RETURNED = { width: 14, height: 8 };
const GAP = 2;
/** How far a scope's chips for crossing regions are apart, and how wide one is. */
export const CHIP_STEP = 21;
const CHIP = 18;
export const MOST_CHIPS = 5;

/** Places an op's signs, from its box's own corner: what a run does at the top right, candidates at the bottom right, times at the left. */
export function marksOf(width: number, height: number, signs: Signs): Marks {
  const marks: Marks = {};
  let right = width + 7;
  if (signs.observed) right = (marks.observed = { x: right - RING, y: -7, width: RING, height: RING }).x - GAP;
  if (signs.change) marks.change = { x: Math.min(right, width + 4) - CHANGE.width, y: -8, ...CHANGE };
  right = width - 8;
  if (signs.near) right = (marks.near = { x: width + 4 - CROSS, y: height - 11, width: CROSS, height: CROSS }).x - GAP;
  if (signs.rivals > 0) marks.rivals = { x: right - RIVALS.width, y: height - 3, ...RIVALS };
  if (signs.returned) marks.returned = { x: width / 2 - RETURNED.width / 2, y: height, ...RETURNED };
  if (signs.measured) {
    const across = signs.measured.length * 6.1 + 10;
    marks.measured = { x: Math.min(6, (marks.returned?.x ?? width) - GAP - across), y: height - 3, width: across, height: 14 };
  }
  return marks;
}

/** What an op's box bears now. */
export function signsOf(viewer: Viewer, value: number): Signs {
  const mark = markOf(viewer.compared, viewer.side, value);
  const regions = viewer.index?.of(value) ?? [];
  const profile = viewer.profiling.shown;
  // measured on the op alone where no kernel takes its place
  const alone = profile && !regions.some((r) => r.verdict === 'taken') ? (viewer.profiling.same ? profile.step(value) : profile.op(value)) : null;
  return {
    change: mark === 'added' || mark === 'retyped' ? mark : null,
    observed: viewer.whatif.observes(value),
    near: regions.some((r) => r.verdict === 'near_miss' && r.root === value),
    rivals: Math.max(0, regions.filter((r) => r.verdict !== 'near_miss' && r.computing.includes(value)).length - 1),
    returned: viewer.model!.graph.results.includes(value),
    measured: alone === null ? '' : seconds(alone),
  };
}

/** The signs of an op's or a closed scope's box, where they stand in the drawing. */
export function marksIn(viewer: Viewer, box: Box, crossing: number): Rect[] {
  const placed = box.kind === 'op' ? Object.values(marksOf(box.width, box.height, signsOf(viewer, box.id))) : chips(box, crossing);
  return placed.map((mark) => ({ ...mark, x: box.x + mark.x, y: box.y + mark.y }));
}

/** The row of a closed scope's chips with what counts those that have none. */
function chips(box: Box, crossing: number): Rect[] {
  if (!crossing) return [];
  const shown = crossing > MOST_CHIPS ? MOST_CHIPS - 1 : crossing;
  const across = CHIP + (shown - 1) * CHIP_STEP + (crossing > shown ? 24 : 0);
  return [{ x: box.width - 5 - across, y: box.height - CHIP / 2, width: across, height: CHIP }];
}
