/** Draws the whole scene with a pen: what is seen from far, where text would be dust and elements too many. */

import { VERDICTS, type Verdict } from '../data/document';
import type { PlanIndex } from '../data/planning';
import type { Tree } from '../data/scopes';
import type { Box, Scene } from '../layout/scene';
import { scopeTitle } from '../layout/measure';
import type { Palette } from './palette';

type Ink = string | CanvasPattern | CanvasGradient;

/** What a canvas can do of what is drawn with; a file of strokes can do as much. */
export interface Pen {
  fillStyle: Ink;
  strokeStyle: Ink;
  lineWidth: number;
  globalAlpha: number;
  font: string;
  save(): void;
  restore(): void;
  translate(x: number, y: number): void;
  scale(x: number, y: number): void;
  fillRect(x: number, y: number, width: number, height: number): void;
  strokeRect(x: number, y: number, width: number, height: number): void;
  beginPath(): void;
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
  arc(x: number, y: number, radius: number, from: number, to: number): void;
  fill(): void;
  stroke(): void;
  fillText(text: string, x: number, y: number): void;
  measureText(text: string): { width: number };
}

/** What fills an op of a region: differs without colour. */
export type Fills = Record<Verdict, Ink>;

export interface FarView {
  scene: Scene;
  tree: Tree;
  index: PlanIndex;
  camera: { x: number; y: number; k: number };
  width: number;
  height: number;
  colours: Palette;
  selected: ReadonlySet<number>;
  selectedScope: number | null;
  dimmed: (box: Box) => boolean;
}

const MOST_EDGES = 4000;
/** How much a closed scope that loses all that is lost is coloured by it. */
const MOST_LOST = 0.6;
const SIGNS: Record<Verdict, string> = { blocked: '◉', declined: '≈', near_miss: '✕', taken: '✓' };
export const FAR_FONT = '600 11px system-ui, "DejaVu Sans", sans-serif';

export function drawFar(context: Pen, view: FarView, fills: Fills): void {
  const { scene, tree, index, camera, width, height, colours } = view;
  const { k } = camera;
  context.fillStyle = colours.canvas;
  context.fillRect(0, 0, width, height);
  const seen = (x: number, y: number, w: number, h: number): boolean =>
    (x + w) * k + camera.x > 0 && x * k + camera.x < width && (y + h) * k + camera.y > 0 && y * k + camera.y < height;
  context.save();
  context.translate(camera.x, camera.y);
  context.scale(k, k);
  const frames = scene.boxes.filter((box) => box.kind === 'frame' && seen(box.x, box.y, box.width, box.height));
  context.fillStyle = colours.frame;
  context.strokeStyle = colours.line;
  context.lineWidth = 1 / k;
  for (const box of frames) {
    context.fillRect(box.x, box.y, box.width, box.height);
    context.strokeRect(box.x, box.y, box.width, box.height);
  }
  if (scene.segments.length <= MOST_EDGES) {
    context.strokeStyle = colours.edge;
    context.lineWidth = Math.max(1, 0.7 / k);
    context.beginPath();
    for (const { route } of scene.segments) {
      route.forEach(([x, top, bottom], i) => {
        if (i) context.lineTo(x, top);
        else context.moveTo(x, top);
        context.lineTo(x, bottom);
      });
    }
    context.stroke();
  }
  const blocked: Box[] = [];
  const lost = index.lost(0);
  context.lineWidth = 1 / k;
  for (const box of scene.boxes) {
    if (box.kind === 'frame' || !seen(box.x, box.y, box.width, box.height)) continue;
    context.globalAlpha = view.dimmed(box) ? 0.25 : 1;
    if (box.kind === 'op') {
      const region = index.of(box.id).find((r) => r.verdict !== 'near_miss');
      context.fillStyle = region ? fills[region.verdict] : colours.node;
      context.fillRect(box.x, box.y, box.width, box.height);
      context.strokeStyle = region ? colours.verdict[region.verdict] : colours.edge;
      context.strokeRect(box.x, box.y, box.width, box.height);
      if (region?.verdict === 'blocked' && region.root === box.id) blocked.push(box);
      if (view.selected.has(box.id)) outline(context, box, colours.select, k);
    } else {
      context.fillStyle = colours.node;
      context.fillRect(box.x, box.y, box.width, box.height);
      if (index.lost(box.id) > 0) {
        const alpha = context.globalAlpha;
        context.globalAlpha = alpha * MOST_LOST * (index.lost(box.id) / lost);
        context.fillStyle = colours.verdict.blocked;
        context.fillRect(box.x, box.y, box.width, box.height);
        context.globalAlpha = alpha;
      }
      context.strokeStyle = colours.nodeLine;
      context.strokeRect(box.x, box.y, box.width, box.height);
      context.strokeStyle = colours.line;
      shares(context, box, index, colours);
      if (index.tally(box.id).blocked) blocked.push(box);
      if (view.selectedScope === box.id) outline(context, box, colours.select, k);
    }
  }
  context.restore();
  context.globalAlpha = 1;
  // what must be found from any height keeps its size on the screen
  context.font = FAR_FONT;
  const names = scene.boxes.filter((box) => box.kind !== 'op' && box.width * k >= 40 && seen(box.x, box.y, box.width, box.height));
  const written: Place[] = [];
  for (const box of names.sort((a, b) => b.width * b.height - a.width * a.height)) {
    const title = scopeTitle(tree.scopes[box.id]);
    const place = { x: box.x * k + camera.x + 3, y: Math.max(1, box.y * k + camera.y + 2), width: context.measureText(title).width + 6, height: 14 };
    // a name that would be squeezed, or stand on that of the scope around it, is left to a closer look
    if (place.width > box.width * k || written.some((other) => overlap(place, other))) continue;
    written.push(place);
    context.fillStyle = box.kind === 'frame' ? colours.frame : colours.node;
    context.fillRect(place.x, place.y, place.width, place.height);
    context.fillStyle = colours.text;
    context.fillText(title, place.x + 3, place.y + 11);
    written.push(...counts(context, index.tally(box.id), colours, { ...place, x: place.x + place.width }, box.x * k + camera.x + box.width * k, written));
  }
  for (const box of blocked) {
    const [x, y] = [(box.x + box.width / 2) * k + camera.x, (box.y + box.height / 2) * k + camera.y];
    context.lineWidth = 2;
    context.strokeStyle = context.fillStyle = colours.verdict.blocked;
    circle(context, x, y, 7, colours.canvas);
    context.beginPath();
    context.arc(x, y, 3, 0, 7);
    context.fill();
  }
}

/** Writes how many regions of every verdict a scope holds behind its name, where there is room; gives where. */
function counts(context: Pen, tally: Record<Verdict, number>, colours: Palette, after: Place, end: number, taken: readonly Place[]): Place[] {
  const badges = [...VERDICTS].reverse().filter((verdict) => verdict !== 'near_miss' && tally[verdict]).map((verdict) => ({ verdict, text: `${SIGNS[verdict]}${tally[verdict]}` }));
  const width = badges.reduce((sum, { text }) => sum + context.measureText(text).width + 7, 2);
  const place = { ...after, width };
  if (!badges.length || place.x + width > end || taken.some((other) => overlap(place, other))) return [];
  context.fillStyle = colours.canvas;
  context.fillRect(place.x, place.y, place.width, place.height);
  let x = place.x + 4;
  for (const { verdict, text } of badges) {
    context.fillStyle = colours.verdict[verdict];
    context.fillText(text, x, place.y + 11);
    x += context.measureText(text).width + 7;
  }
  return [place];
}

interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

function overlap(one: Place, other: Place): boolean {
  return one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height;
}

/** Fills for a canvas: plain, hatched, dotted. */
export function textures(context: CanvasRenderingContext2D, colours: Palette): Fills {
  const tile = (colour: string, paint: (tile: CanvasRenderingContext2D) => void): CanvasPattern | string => {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 5;
    const inner = canvas.getContext('2d')!;
    inner.fillStyle = colours.canvas;
    inner.fillRect(0, 0, 5, 5);
    inner.fillStyle = inner.strokeStyle = colour;
    paint(inner);
    return context.createPattern(canvas, 'repeat') ?? colour;
  };
  const hatch = (inner: CanvasRenderingContext2D): void => {
    inner.lineWidth = 2.2;
    for (const shift of [-5, 0, 5]) {
      inner.moveTo(shift - 1, 6);
      inner.lineTo(shift + 6, -1);
    }
    inner.stroke();
  };
  return {
    taken: colours.verdict.taken, near_miss: colours.node,
    declined: tile(colours.verdict.declined, hatch),
    blocked: tile(colours.verdict.blocked, (inner) => {
      inner.fillRect(0, 0, 2, 2);
      inner.fillRect(2.5, 2.5, 2, 2);
    }),
  };
}

/** Brings textures to one size on the screen, whatever the zoom. */
export function unzoomed(fills: Fills, k: number): Fills {
  const matrix = new DOMMatrix().scale(1 / k);
  for (const fill of Object.values(fills)) if (fill instanceof CanvasPattern) fill.setTransform(matrix);
  return fills;
}

function circle(context: Pen, x: number, y: number, radius: number, fill: string): void {
  const stroke = context.strokeStyle;
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fillStyle = fill;
  context.fill();
  context.strokeStyle = stroke;
  context.stroke();
  context.fillStyle = stroke;
}

function outline(context: Pen, box: Box, colour: string, k: number): void {
  context.save();
  context.strokeStyle = colour;
  context.lineWidth = 3 / k;
  context.strokeRect(box.x, box.y, box.width, box.height);
  context.restore();
}

/** A closed scope's verdicts as shares of one bar along its foot. */
function shares(context: Pen, box: Box, index: PlanIndex, colours: Palette): void {
  const tally = index.tally(box.id);
  const total = tally.taken + tally.declined + tally.blocked;
  if (!total) return;
  let x = box.x;
  for (const verdict of ['taken', 'declined', 'blocked'] as const) {
    const width = (box.width * tally[verdict]) / total;
    context.fillStyle = colours.verdict[verdict];
    context.fillRect(x, box.y + box.height * 0.6, width, box.height * 0.4);
    x += width;
  }
}
