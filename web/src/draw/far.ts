/** Draws the whole scene on a canvas: what is seen from far, where text would be dust and SVG too much. */

import type { Verdict } from '../data/document';
import type { PlanIndex } from '../data/planning';
import type { Tree } from '../data/scopes';
import type { Box, Scene } from '../layout/scene';
import { scopeTitle } from '../layout/measure';

export interface Palette {
  canvas: string;
  frame: string;
  node: string;
  nodeLine: string;
  line: string;
  edge: string;
  text: string;
  select: string;
  accent: string;
  verdict: Record<Verdict, string>;
}

export function palette(element: HTMLElement): Palette {
  const probe = document.createElement('span');
  element.append(probe);
  const colour = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const result = {
    canvas: colour('canvas'), frame: colour('frame'), node: colour('node'), nodeLine: colour('node-line'), line: colour('line'),
    edge: colour('edge'), text: colour('text'), select: colour('select'), accent: colour('accent'),
    verdict: { taken: colour('taken'), declined: colour('declined'), blocked: colour('blocked'), near_miss: colour('near-miss') },
  };
  probe.remove();
  return result;
}

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

export function drawFar(context: CanvasRenderingContext2D, view: FarView): void {
  const { scene, tree, index, camera, width, height, colours } = view;
  const { k } = camera;
  context.clearRect(0, 0, width, height);
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
  const fills = texture(context, colours, k);
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
  context.font = '600 11px system-ui, "DejaVu Sans", sans-serif';
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

interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

function overlap(one: Place, other: Place): boolean {
  return one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height;
}

/** Fills that differ without colour: plain, hatched, dotted; at one size on the screen. */
function texture(context: CanvasRenderingContext2D, colours: Palette, k: number): Record<Verdict, string | CanvasPattern> {
  const tile = (colour: string, paint: (tile: CanvasRenderingContext2D) => void): CanvasPattern | string => {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 5;
    const inner = canvas.getContext('2d')!;
    inner.fillStyle = colours.canvas;
    inner.fillRect(0, 0, 5, 5);
    inner.fillStyle = inner.strokeStyle = colour;
    paint(inner);
    const pattern = context.createPattern(canvas, 'repeat');
    pattern?.setTransform(new DOMMatrix().scale(1 / k));
    return pattern ?? colour;
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

function circle(context: CanvasRenderingContext2D, x: number, y: number, radius: number, fill: string): void {
  const stroke = context.strokeStyle;
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fillStyle = fill;
  context.fill();
  context.strokeStyle = stroke;
  context.stroke();
  context.fillStyle = stroke;
}

function outline(context: CanvasRenderingContext2D, box: Box, colour: string, k: number): void {
  context.save();
  context.strokeStyle = colour;
  context.lineWidth = 3 / k;
  context.strokeRect(box.x, box.y, box.width, box.height);
  context.restore();
}

/** A closed scope's verdicts as shares of one bar along its foot. */
function shares(context: CanvasRenderingContext2D, box: Box, index: PlanIndex, colours: Palette): void {
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
