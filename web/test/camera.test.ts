import { describe, expect, it } from 'vitest';

import { brought, firstView, fullest, held, MAP_EDGE, mapOf, wholeView } from '../src/state/camera';
import { read } from '../src/state/url';

const WINDOW = { width: 780, height: 820 };
const SIZES = [{ width: 150, height: 90 }, { width: 600, height: 1400 }, { width: 1247, height: 4000 }, { width: 9000, height: 90000 }, { width: 20000, height: 300 }];

/** How much of the drawing is in view, in pixels. */
function seen({ x, y, k }: { x: number; y: number; k: number }, drawing: { width: number; height: number }): [number, number] {
  const along = (at: number, length: number, window: number): number => Math.min(at + length * k, window) - Math.max(at, 0);
  return [along(x, drawing.width, WINDOW.width), along(y, drawing.height, WINDOW.height)];
}

describe('the camera', () => {
  it.each(['#at=0,0,0', '#at=1e308,1e308,1e-300', '#at=0,0,-1', '#at=0,0,1e300', '#at=0,0,NaN', '#at=Infinity,0,1', '#at=,,'])('is not one at %s', (address) => {
    expect(read(address).camera).toBeUndefined();
  });
  it.each(SIZES)('shows some of a drawing of %j from wherever it is sent', (drawing) => {
    for (const x of [-1e308, -5000, 0, 5000, 1e308])
      for (const k of [0.001, 0.03, 0.66, 2.5]) {
        const camera = held({ x, y: -x, k }, drawing, WINDOW);
        for (const [pixels, length] of [[seen(camera, drawing)[0], drawing.width], [seen(camera, drawing)[1], drawing.height]])
          expect(pixels).toBeGreaterThanOrEqual(Math.min(64, length * camera.k) - 1e-6);
        expect(held(camera, drawing, WINDOW)).toEqual(camera);
      }
  });
  it.each(SIZES)('stays where all of %j is seen, and where it opens', (drawing) => {
    const whole = wholeView(drawing, WINDOW);
    expect(held(whole, drawing, WINDOW)).toEqual(whole);
    const first = firstView(drawing, WINDOW, { kind: 'op', x: 0, y: 0, width: 120, height: 40 });
    expect(held(first, drawing, WINDOW)).toEqual(first);
  });
});

describe('the first view', () => {
  const op = { kind: 'op' as const, x: 900, y: 20, width: 120, height: 40 };
  it('shows all of a small drawing in the middle', () => {
    expect(firstView({ width: 600, height: 600 }, WINDOW, op)).toEqual({ k: 1.1, x: 60, y: 80 });
  });
  it('shows all of the width of a drawing that is wide and tall, from its top on and beside its map', () => {
    const drawing = { width: 1247, height: 4000 };
    const { x, y, k } = firstView(drawing, WINDOW, op);
    const map = mapOf(drawing, WINDOW)!;
    expect(k).toBeCloseTo((724 - map.width) / 1247);
    expect([x, y]).toEqual([expect.closeTo(28), 28]);
    expect(x + drawing.width * k).toBeLessThan(WINDOW.width - map.width - MAP_EDGE);
  });
  it('needs no room for a map where all is in view', () => {
    const drawing = { width: 1200, height: 800 };
    expect(firstView(drawing, WINDOW, op).k).toBeCloseTo(724 / 1200);
  });
  it('leaves no room for a map in a window that has none', () => {
    expect(mapOf({ width: 1247, height: 4000 }, { width: 400, height: 800 })).toBeNull();
  });
  it('leaves nothing but margin beyond the edges of a drawing that is wider', () => {
    const drawing = { width: 4000, height: 4000 };
    expect(firstView(drawing, WINDOW, { ...op, x: 0 })).toEqual({ k: 0.66, x: 28, y: 28 });
    const free = 780 - mapOf(drawing, WINDOW)!.width;
    expect(firstView(drawing, WINDOW, { ...op, x: 3900 }).x).toBeCloseTo(free - 28 - 2640);
    expect(firstView(drawing, WINDOW, { ...op, x: 1940 }).x).toBeCloseTo(free / 2 - 2000 * 0.66);
  });
  it('shows a closed scope that holds most of the model in the middle', () => {
    const { y } = firstView({ width: 700, height: 9000 }, WINDOW, { ...op, kind: 'scope', y: 4480 });
    expect(y).toBeCloseTo(410 - 4500 * 0.9);
  });
});

it('a wide drawing without a main scope opens where most boxes are', () => {
  const box = (x: number, y: number): { kind: 'op'; x: number; y: number; width: number; height: number } => ({ kind: 'op', x, y, width: 120, height: 40 });
  const boxes = [box(0, 0), ...[0, 1, 2, 3, 4].map((i) => box(3000 + 160 * i, 80)), box(9000, 0), box(9000, 90000), box(9160, 90000)];
  const start = fullest(boxes, WINDOW);
  expect([start.x, start.width]).toEqual([3000, 760]);
  const { x, k } = firstView({ width: 12000, height: 91000 }, WINDOW, start);
  expect(3000 * k + x).toBeGreaterThanOrEqual(0);
  expect(3760 * k + x).toBeLessThanOrEqual(WINDOW.width);
});

describe('what is brought into view', () => {
  const map = { width: 120, height: 220 };
  const overMap = (part: { x: number; y: number; width: number; height: number }, { x, y, k }: { x: number; y: number; k: number }): boolean =>
    (part.x + part.width) * k + x > WINDOW.width - map.width - MAP_EDGE && (part.y + part.height) * k + y > WINDOW.height - map.height - MAP_EDGE;

  it.each([[700, 700], [1200, 600], [400, 1400], [900, 900], [650, 90]])('stands beside the map: %d x %d', (width, height) => {
    const part = { x: 4000, y: 3000, width, height };
    const camera = brought(part, { x: 0, y: 0, k: 0.7 }, WINDOW, map)!;
    expect(part.x * camera.k + camera.x).toBeGreaterThanOrEqual(0);
    if (width * 0.42 < WINDOW.width - map.width - 96) expect(overMap(part, camera)).toBe(false);
  });
  it('stays where it is in view already', () => {
    expect(brought({ x: 100, y: 100, width: 200, height: 80 }, { x: 0, y: 0, k: 1 }, WINDOW, map)).toBeNull();
  });
  it('moves where the map lies over it', () => {
    const part = { x: 500, y: 560, width: 220, height: 180 };
    expect(brought(part, { x: 0, y: 0, k: 1 }, WINDOW, null)).toBeNull();
    expect(brought(part, { x: 0, y: 0, k: 1 }, WINDOW, map)).not.toBeNull();
  });
});
