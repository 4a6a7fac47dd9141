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
 * `besides` is what stands behind a label in a chip of its own; no label lies on another, nor on one of `boxes`.
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

/** The label where no other stands and no box: right of those in its way, else in a row above or below, else in the nearest gap. */
function free(label: Label, placed: Label[], boxes: readonly Rect[]): Label {
  const row = (k: number): Label => ({ ...label, y: label.y + k * (LABEL_HEIGHT + 2) });
  const close = [0, -1, 1, -2, 2].map((k) => beside(row(k), placed)).find((at) => !boxes.some((box) => overlaps(box, at)));
  if (close) return close;
  const all = [...placed, ...boxes];
  const away = (at: Label): number => at.x - label.x + Math.abs(at.y - label.y);
  return [0, -1, 1, -2, 2, -3, 3, -4, 4].map((k) => beside(row(k), all)).reduce((best, at) => (away(at) < away(best) ? at : best));
}

/** The label right of those that it would lie on. */
function beside(label: Label, others: readonly Rect[]): Label {
  let at = label;
  for (let other = others.find((one) => overlaps(one, at)); other; other = others.find((one) => overlaps(one, at))) at = { ...at, x: other.x + other.width + GAP };
  return at;
}
