/** What edges carry, written beside them where they leave: seen close. */

import type { Model } from '../data/model';
import type { Segment } from '../layout/scene';

export interface EdgeLabel {
  key: string;
  x: number;
  y: number;
  text: string;
}

/** Labels edges with dtype and shape, once per place that they leave from; an edge of several values counts the others. */
export function edgeLabels(model: Model, segments: readonly Segment[]): EdgeLabel[] {
  const labels = new Map<string, EdgeLabel>();
  for (const { values, route } of segments) {
    const [x, top] = route[0];
    const key = `${values[0]} ${Math.round(x)} ${Math.round(top)}`;
    const text = `${model.type(values[0])}${values.length > 1 ? ` +${values.length - 1}` : ''}`;
    if (!labels.has(key)) labels.set(key, { key, x: x + 5, y: top + 13, text });
  }
  return [...labels.values()];
}
