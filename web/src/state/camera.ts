/** Where the drawing stands in its window: what zoom and shift may be, and which view is the first. */

export interface Camera {
  x: number;
  y: number;
  k: number;
}

export interface Size {
  width: number;
  height: number;
}

/** Every zoom there is; an address names it with three decimals. */
const LEAST_ZOOM = 0.001;
const MOST_ZOOM = 2.5;
const LARGEST_FIRST = 1.1;
/** From here on all of a drawing is small in any window. */
const SMALL = 0.2;
/** From here on the drawing is one of boxes with text; from farther it is a picture. */
export const NEAR = 0.4;
/** Type of 8 px: smaller is a picture, not a text. */
export const READABLE = 0.66;
/** Type of 6.5 px, which is legible: all of the width beside the map beats a size that is easier to read. */
export const LEGIBLE = 0.52;
/** Pixels of the drawing that stay in view, whatever moves it. */
const KEPT = 64;
const MARGIN = 28;
/** Pixels around what is brought into view. */
const ROOM = 48;
/** Pixels between the map and the window's edges. */
export const MAP_EDGE = 12;

/** The camera that an address asks for, where it can be one. */
export function cameraOf(values: readonly number[] | undefined): [number, number, number] | undefined {
  if (values?.length !== 3 || !values.every(Number.isFinite)) return undefined;
  const [x, y, k] = values;
  return k >= LEAST_ZOOM && k <= MOST_ZOOM ? [x, y, k] : undefined;
}

/** The nearest camera that shows some of the drawing, at a zoom that the drawing can be seen at. */
export function held({ x, y, k }: Camera, drawing: Size, window: Size): Camera {
  const least = Math.max(LEAST_ZOOM, Math.min(SMALL, wholeZoom(drawing, window, 0) / 2));
  const zoom = Math.min(MOST_ZOOM, Math.max(least, k));
  return { x: along(x, drawing.width * zoom, window.width), y: along(y, drawing.height * zoom, window.height), k: zoom };
}

function along(at: number, length: number, window: number): number {
  const kept = Math.min(KEPT, length);
  return Math.min(window - kept, Math.max(kept - length, at));
}

/** All of the drawing, as small as that may be. */
export function wholeView(drawing: Size, window: Size): Camera {
  return centred(drawing, window, Math.min(LARGEST_FIRST, wholeZoom(drawing, window, 20)));
}

/** How large the map of a drawing is, which lies in the window's lower right corner; tall drawings have a strip. Null: no room for one. */
export function mapOf(drawing: Size, window: Size): Size | null {
  if (window.width < 420 || window.height < 240) return null;
  const height = Math.min(window.height * 0.4, Math.max(60, Math.min(220, (drawing.height / drawing.width) * 120)));
  return { width: Math.max(44, Math.min(130, window.width * 0.2, (drawing.width / drawing.height) * height)), height };
}

/** The camera that shows a part of the drawing, beside the map where that would lie over it; null where it is in view already. */
export function brought(part: Size & { x: number; y: number }, camera: Camera, window: Size, map: Size | null): Camera | null {
  const zoom = (across: number): number => {
    const k = Math.max(camera.k, READABLE);
    const most = Math.min((across - 2 * ROOM) / part.width, (window.height - 2 * ROOM) / part.height);
    return k <= most ? k : Math.max(NEAR + 0.02, most);
  };
  const goal = (across: number): Camera => {
    const k = zoom(across);
    return { k, x: across / 2 - (part.x + part.width / 2) * k, y: window.height / 2 - (part.y + Math.min(part.height, (window.height - 2 * ROOM) / k) / 2) * k };
  };
  const mapped = ({ x, y, k }: Camera): boolean =>
    map !== null && (part.x + part.width) * k + x > window.width - map.width - 2 * MAP_EDGE && (part.y + part.height) * k + y > window.height - map.height - 2 * MAP_EDGE;
  const [left, top] = [part.x * camera.k + camera.x, part.y * camera.k + camera.y];
  const [right, bottom] = [left + part.width * camera.k, top + part.height * camera.k];
  const inside = zoom(window.width) === camera.k && Math.min(left, top) >= ROOM / 2 && right <= window.width - ROOM / 2 && bottom <= window.height - ROOM / 2;
  if (inside && !mapped(camera)) return null;
  const first = goal(window.width);
  return map && mapped(first) ? goal(window.width - map.width - MAP_EDGE) : first;
}

/** A box of the drawing. */
export interface Part extends Size {
  kind: 'op' | 'scope' | 'frame';
  x: number;
  y: number;
}

/**
 * The view that a plan opens with: all of the drawing where that can be read, else all of its width, else as much as can be read of
 * `start`: a closed scope in the middle, anything else below the drawing's top. Nothing but margin lies beyond an edge in view, and where
 * not all is, the map lies beside it.
 */
export function firstView(drawing: Size, whole: Size, start: Part): Camera {
  const all = wholeZoom(drawing, whole, MARGIN);
  if (all >= READABLE || (all >= LEGIBLE && all === (whole.width - 2 * MARGIN) / drawing.width)) return centred(drawing, whole, Math.min(LARGEST_FIRST, all));
  const window = { ...whole, width: whole.width - (mapOf(drawing, whole)?.width ?? 0) };
  const across = (window.width - 2 * MARGIN) / drawing.width;
  const k = across >= LEGIBLE ? Math.min(0.9, across) : READABLE;
  const middle = start.kind === 'scope' ? start.y + start.height / 2 : 0;
  return { k, x: about(start.x + start.width / 2, drawing.width, window.width, k), y: about(middle, drawing.height, window.height, k) };
}

/** The stretch of a drawing's top that holds most boxes at a size that can be read. */
export function fullest(boxes: readonly Part[], window: Size): Part {
  const [across, down] = [(window.width - 2 * MARGIN) / READABLE, (window.height - 2 * MARGIN) / READABLE];
  const top = boxes.filter((box) => box.y + box.height <= down);
  const within = (left: number): Part[] => top.filter((box) => box.x >= left && box.x + box.width <= left + across);
  const best = top.reduce<Part[]>((most, { x }) => (within(x).length > most.length ? within(x) : most), []);
  const [first] = best.length ? best : boxes;
  const [left, right] = [Math.min(first.x, ...best.map((box) => box.x)), Math.max(first.x + first.width, ...best.map((box) => box.x + box.width))];
  return { kind: 'frame', x: left, y: 0, width: right - left, height: first.height };
}

function about(middle: number, length: number, window: number, k: number): number {
  const slack = window - length * k;
  return slack >= 2 * MARGIN - 1 ? slack / 2 : Math.min(MARGIN, Math.max(slack - MARGIN, window / 2 - middle * k));
}

function centred(drawing: Size, window: Size, k: number): Camera {
  return { k, x: (window.width - drawing.width * k) / 2, y: (window.height - drawing.height * k) / 2 };
}

function wholeZoom(drawing: Size, window: Size, margin: number): number {
  return Math.min((window.width - 2 * margin) / drawing.width, (window.height - 2 * margin) / drawing.height);
}
