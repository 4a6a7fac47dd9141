/** What the layout worker is asked and what it answers: one open scope at a time, children before parents. */

export interface Job {
  scope: number;
  /** Width and height of every item; an open scope's are filled in from its own job. */
  width: number[];
  height: number[];
  /** Per item, the position in `jobs` of the open scope that it is, or -1. */
  open: number[];
  /** Items that stand for values coming in from outside, at the top border; then those going out, at the bottom. */
  incoming: number[];
  outgoing: number[];
  /** Items whose edges may be long: the program's inputs. */
  light: number[];
  /** Pairs of items. */
  edges: [number, number][];
}

/** Vertical runs [x, top, bottom] joined by curves: an edge never leaves its rank's band but in the gaps. */
export type Route = [number, number, number][];

export interface Placed {
  scope: number;
  width: number;
  height: number;
  /** Centres. */
  x: number[];
  y: number[];
  routes: Route[];
}

export interface LayoutRequest {
  id: number;
  jobs: Job[];
}

export interface LayoutAnswer {
  id: number;
  placed: Placed[];
}
