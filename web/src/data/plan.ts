/** What plan documents hold. Made from topos_core/document/schema.py by docs/generate.py. */

export type Verdict = 'taken' | 'declined' | 'blocked' | 'near_miss';

export interface Span {
  path: string;
  line: number;
  column: number;
  end_line: number;
  end_column: number;
}

export interface Figure {
  /** Null where JSON cannot hold it. */
  value: number;
  unit: string;
  basis: 'counted' | 'modelled' | 'measured';
}

export interface NearMiss {
  at: number;
  code: string;
  expected: string;
  found: string;
  steps_held: number;
  steps: number;
  span: Span | null;
}

export interface Edit extends Span {
  text: string;
}

export interface Fix {
  title: string;
  edits: Edit[];
}

/** What ends a block: what a what-if adds to its options, and edits where those of the findings do not say it. */
export interface Remedy {
  id: 'stop' | 'move' | 'beside' | 'debug';
  text: string;
  /** What it changes in a run, as the plan predicts. */
  delta: Figure;
  asks: {
    ignore: number[];
    beside: number[];
    observe: number[];
    unobserve: number[];
  };
  edits: Edit[];
}

export interface Module extends Span {
  name: string;
}

export interface Other {
  verdict: Verdict;
  code: string | null;
  reason: string;
}

export interface Flip {
  text: string;
  of: 'efficiency' | 'start' | null;
  now: Figure | null;
  at: Figure | null;
}

export interface Envelope {
  relative: number;
  absolute: number;
  probe: string;
}

export interface Region extends Span {
  id: string;
  key: string;
  pattern: string;
  verdict: Verdict;
  code: string | null;
  word: string | null;
  consumer: string;
  fidelity: string;
  kernel: string | null;
  scope: string[];
  occurrence: number;
  spans: Span[];
  root: number;
  nodes: number[];
  computing: number[];
  bindings: Record<string, number>;
  named: Record<string, number[]>;
  contains: string[];
  parent: string | null;
  winner: string | null;
  fold: string;
  headline: string;
  reason: string;
  details: string[];
  action: string | null;
  facts: Record<string, string>;
  cost: Record<string, Figure>;
  envelope: Envelope | null;
  observations: number[];
  paths: number[][];
  nearest_free: number | null;
  near_miss: NearMiss | null;
  fingerprint: string;
  others: Record<string, Other>;
  /** Where the torch modules of its ops were built. */
  modules?: Module[];
  /** The nearest condition under which a region that cost declines would be taken. */
  flips_if?: Flip | null;
  /** Of a declined region, the observations that would block it if what declines it fell. */
  would_block?: number[];
  /** Values outside that read a computed inner value. */
  readers?: number[];
  /** What ends a block, best first. */
  fixes?: Remedy[];
}

export interface Observation extends Span {
  value: number;
  kind: string;
  name: string | null;
  assumed: boolean;
  location: number;
  value_span: Span | null;
  blocks: string[];
  /** Whether the request left it out. */
  ignored?: boolean;
  /** Whether the request added it. */
  asked?: boolean;
  /** Whether what it reads is recomputed, so that it blocks nothing. */
  beside?: boolean;
  would_block?: string[];
  /** Says that it blocks nothing, and which declined regions it would. */
  idle?: string | null;
}

export interface Related extends Span {
  message: string;
}

export interface Finding extends Span {
  code: string;
  severity: 'error' | 'warning' | 'information' | 'hint';
  verdict: Verdict | null;
  pattern: string | null;
  region: string | null;
  headline: string;
  details: string[];
  related: Related[];
  fingerprint: string;
  fix: Fix | null;
  /** Every change that ends it, best first. */
  fixes?: Fix[];
}

export interface Liveness {
  /** The root value of each step. */
  steps: number[];
  bytes: number[];
  peak_bytes: number;
  peak_step: number;
  recorded_bytes: number[];
  recorded_peak_bytes: number;
  recorded_peak_step: number;
  arena_bytes?: number | null;
  spared_bytes?: Record<string, number>;
  /** The steps where nothing is taken; where left out, ops in order. */
  recorded_steps?: number[];
}

export interface Counts {
  taken: number;
  declined: number;
  blocked: number;
  near_miss: number;
  ops: number;
  opaque: number;
}

/** Of a whole run; `unobserved` is the plan without the observations that block, left out where none do. */
export interface Totals {
  recorded: Record<string, Figure>;
  planned: Record<string, Figure>;
  unobserved?: Record<string, Figure>;
}

export interface Named {
  value: number;
  name: string;
}

/** Path, line, column, end line, end column, function, kind. */
export type Frame = [number, number, number, number, number, number, string];

/** Scope, and frames from the innermost on. */
export type Location = [number, number[]];
