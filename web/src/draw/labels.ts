/** Where regions' labels stand: on the top edge of their sleeves, and beside or above one another where two would meet. */

import type { Region } from '../data/document';
import { words } from '../data/figures';
import { clip } from '../layout/measure';
import type { DrawnRegion } from './regions';
import { overlaps, type Rect } from './sleeve';

export interface Label extends Rect {
  drawn: DrawnRegion;
  text: string;
}

export const LABEL_HEIGHT = 18;
const LETTER = 6.7;
const GAP = 4;

/** How wide a chip with a sign and so many letters is. */
export function labelWidth(text: string): number {
  return text.length * LETTER + 28;
}

/**
 * Places labels, those of `first` before others.
 *
 * `besides` is what stands behind a label in a chip of its own; no label lies on another, nor on one of `boxes` where there is room.
 */
export function placeLabels(drawn: DrawnRegion[], boxes: readonly Rect[], first: (region: Region) => boolean, besides: (drawn: DrawnRegion) => string): Label[] {
  const rank = (d: DrawnRegion): number => (first(d.region) ? 0 : d.filled ? 1 : 2);
  const placed: Label[] = [];
  for (const d of [...drawn].sort((a, b) => rank(a) - rank(b))) {
    const { head } = d.sleeve;
    const text = clip(words(d.region.pattern), Math.max(22, Math.floor((head.width - 34) / LETTER)));
    const extra = besides(d);
    const label: Label = {
      drawn: d, text, x: head.x + 8, y: head.y - (d.filled ? 9 : 17), width: labelWidth(text) + (extra ? GAP + labelWidth(extra) : 0), height: LABEL_HEIGHT,
    };
    placed.push(free(label, placed, boxes));
  }
  return placed;
}

/** The label where no other stands: right of those in its way, else in a row above or below; on a box only where nothing else is left. */
function free(label: Label, placed: Label[], boxes: readonly Rect[]): Label {
  const rows = [0, -1, 1, -2, 2].map((row) => beside({ ...label, y: label.y + row * (LABEL_HEIGHT + 2) }, placed));
  return rows.find((at) => !boxes.some((box) => overlaps(box, at))) ?? rows[0];
}

function beside(label: Label, placed: Label[]): Label {
  let at = label;
  for (let other = placed.find((one) => overlaps(one, at)); other; other = placed.find((one) => overlaps(one, at))) at = { ...at, x: other.x + other.width + GAP };
  return at;
}
