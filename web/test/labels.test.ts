import { expect, it } from 'vitest';

import type { Region } from '../src/data/document';
import { placeLabels } from '../src/draw/labels';
import type { DrawnRegion } from '../src/draw/regions';
import { overlaps, type Rect } from '../src/draw/sleeve';

function drawn(pattern: string, x: number, y: number, width = 140, filled = true): DrawnRegion {
  const bounds = { x, y, width, height: 80 };
  return { region: { id: `${pattern}@${x},${y}`, pattern } as Region, filled, sleeve: { path: '', bounds, box: true, head: { x, y, width } } };
}
const place = (regions: DrawnRegion[], boxes: Rect[] = [], first = ''): ReturnType<typeof placeLabels> =>
  placeLabels(regions, boxes, (region) => region.pattern === first, () => null);

it('a label stands on the top edge of its sleeve', () => {
  const [label] = place([drawn('gelu', 100, 200)]);
  expect([label.x, label.y, label.text]).toEqual([108, 191, 'gelu']);
});

it('labels of nested regions lie beside one another', () => {
  const labels = place([drawn('linear_bias_activation', 94, 194), drawn('linear', 100, 200), drawn('matmul', 100, 200, 140, false)]);
  labels.forEach((a, i) => labels.slice(i + 1).forEach((b) => expect(overlaps(a, b)).toBe(false)));
});

it('the chosen label keeps its place', () => {
  const [first, second] = place([drawn('linear', 100, 200), drawn('gelu', 104, 204)], [], 'gelu');
  expect(first.text).toBe('gelu');
  expect(first.x).toBe(112);
  expect(second.x).toBeGreaterThan(first.x);
});

it('a label leaves boxes free where there is room', () => {
  const boxes = [{ x: 200, y: 180, width: 120, height: 40 }];
  const labels = place([drawn('linear_bias_activation', 94, 194), drawn('linear', 100, 200)], boxes);
  expect(labels[1].text).toBe('linear');
  expect(overlaps(labels[1], boxes[0])).toBe(false);
  expect(overlaps(labels[1], labels[0])).toBe(false);
});

it('no label lies on a box in a dense nest, however far the next gap is', () => {
  const boxes: Rect[] = [];
  for (let row = 0; row < 12; row++) for (let column = 0; column < 4; column++) boxes.push({ x: 60 + column * 110, y: 100 + row * 18, width: 108, height: 16 });
  const nest = [0, 1, 2, 3, 4].map((k) => drawn(`linear_${k}`, 90 + 3 * k, 190 + 3 * k));
  const labels = place(nest, boxes);
  for (const label of labels) for (const box of boxes) expect(overlaps(label, box)).toBe(false);
  labels.forEach((a, i) => labels.slice(i + 1).forEach((b) => expect(overlaps(a, b)).toBe(false)));
});
