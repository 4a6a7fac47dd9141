/** Where regions' labels stand: on the top edge of their sleeves, and beside or above one another where two would meet. */

import type { Region } from '../data/document';
import { seconds, words } from '../data/figures';
import type { Profile } from '../data/profile';
import { clip } from '../layout/measure';
import type { DrawnRegion } from './regions';
import { overlaps, type Rect } from './sleeve';

export interface Label extends Rect {
  drawn: DrawnRegion;
  text: string;
  time: Time | null;
}

/** How long a region takes as planned, measured where it was: one of both, never side by side. */
export interface Time {
  text: string;
  measured: boolean;
}

export function timeOf({ region, filled }: DrawnRegion, profile: Profile | null): Time | null {
  if (!filled) return null;
  if (profile) {
    const value = profile.taken(region) ?? (region.verdict === 'taken' ? null : profile.recorded(region));
    return value === null ? null : { text: seconds(value), measured: true };
  }
  const figure = region.verdict === 'taken' ? region.cost.seconds_after : region.cost.seconds_before;
  return figure ? { text: `${seconds(figure.value)} ${figure.basis}`, measured: false } : null;
}

export const LABEL_HEIGHT = 18;
const LETTER = 6.7;
/** What the widest letters take more. */
const WIDE = 4.8;
const GAP = 4;

/** How wide a chip with a sign and so many letters is. */
export function labelWidth(text: string): number {
  return text.length * LETTER + (text.match(/[mwMW%]/g)?.length ?? 0) * WIDE + 28;
}

/** How wide a time's chip is: a measured one has a clock, any other is in small letters. */
export function timeWidth({ text, measured }: Time): number {
  return measured ? labelWidth(text) : text.length * 5.6 + 12;
}

/**
 * Places labels, those of `first` before others.
 *
 * A time stands behind its label in a chip of its own; no label lies on another, nor on one of `boxes`.
 */
export function placeLabels(drawn: DrawnRegion[], boxes: readonly Rect[], first: (region: Region) => boolean, times: (drawn: DrawnRegion) => Time | null): Label[] {
  const rank = (d: DrawnRegion): number => (first(d.region) ? 0 : d.filled ? 1 : 2);
  const placed: Label[] = [];
  for (const d of [...drawn].sort((a, b) => rank(a) - rank(b))) {
    const { head } = d.sleeve;
    const text = clip(words(d.region.pattern), Math.max(22, Math.floor((head.width - 34) / LETTER)));
    const time = times(d);
    const label: Label = {
      drawn: d, text, time, x: head.x + 8, y: head.y - (d.filled ? 9 : 17), width: labelWidth(text) + (time ? GAP + timeWidth(time) : 0), height: LABEL_HEIGHT,
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
