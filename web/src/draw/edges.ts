/** What edges carry, written beside them where they leave: seen close. */

import type { Model } from '../data/model';
import type { Segment } from '../layout/scene';
import { overlaps, type Rect } from './sleeve';

export interface EdgeLabel extends Rect {
  key: string;
  text: string;
}

export const LABEL_HEIGHT = 12;
const LETTER = 5.7;
const BESIDE = 5;
const BELOW = 4;

/**
 * Labels edges with dtype and shape, once per place that they leave from; an edge of several values counts the others.
 *
 * A label stands right of its edge, else left of it, else a line lower, where it lies on none of `taken` and on no other label;
 * without such a place there is none, since the op that the edge leaves says its type too.
 */
export function edgeLabels(model: Model, segments: readonly Segment[], taken: readonly Rect[]): EdgeLabel[] {
  const labels = new Map<string, EdgeLabel>();
  for (const { values, route } of segments) {
    const [x, top] = route[0];
    const key = `${values[0]} ${Math.round(x)} ${Math.round(top)}`;
    if (labels.has(key)) continue;
    const text = `${model.type(values[0])}${values.length > 1 ? ` +${values.length - 1}` : ''}`;
    const size = { width: text.length * LETTER, height: LABEL_HEIGHT };
    const at = [0, 1].flatMap((row) => [x + BESIDE, x - BESIDE - size.width].map((left) => ({ x: left, y: top + BELOW + row * LABEL_HEIGHT, ...size })));
    const others = [...taken, ...labels.values()];
    const free = at.find((place) => !others.some((other) => overlaps(other, place)));
    if (free) labels.set(key, { key, text, ...free });
  }
  return [...labels.values()];
}
