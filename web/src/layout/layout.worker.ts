/** Lays out open scopes away from the page's thread; keeps what it has placed. */

import type { LayoutAnswer, LayoutRequest, Placed } from './job';
import { placeAll } from './place';

const known = new Map<string, Placed>();

self.onmessage = ({ data }: MessageEvent<LayoutRequest>): void => {
  const answer: LayoutAnswer = { id: data.id, placed: placeAll(data.jobs, known) };
  if (known.size > 4096) known.clear();
  self.postMessage(answer);
};
