/** The parts of `topos.plan/1` that the page reads, as the server sends them; see docs/formats.md. */

export type Verdict = 'taken' | 'declined' | 'blocked' | 'near_miss';
export const VERDICTS: readonly Verdict[] = ['blocked', 'declined', 'near_miss', 'taken'];

export interface Span {
  path: string;
  line: number;
  column: number;
  end_line: number;
  end_column: number;
}

export interface Figure {
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
  /** Where the torch modules of its ops were built; older documents have none. */
  modules?: (Span & { name: string })[];
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
  /** The nearest condition under which a region that cost declines would be taken; older documents have none. */
  flips_if?: { text: string; of: 'efficiency' | 'start' | null; now: Figure | null; at: Figure | null } | null;
  facts: Record<string, string>;
  cost: Record<string, Figure>;
  envelope: { relative: number; absolute: number; probe: string } | null;
  observations: number[];
  paths: number[][];
  /** Of a declined region, the observations that would block it if what declines it fell; older documents have none. */
  would_block?: number[];
  /** Values outside that read a computed inner value. */
  readers?: number[];
  nearest_free: number | null;
  near_miss: NearMiss | null;
  fingerprint: string;
  others: Record<string, { verdict: Verdict; code: string | null; reason: string }>;
}

export interface Observation extends Span {
  value: number;
  kind: string;
  name: string | null;
  assumed: boolean;
  location: number;
  /** Whether the request left it out, and whether the request added it. */
  ignored?: boolean;
  asked?: boolean;
  value_span: Span | null;
  blocks: string[];
  /** Says that it blocks nothing, and which declined regions it would; older documents have none. */
  idle?: string | null;
}

export interface Edit {
  path: string;
  line: number;
  column: number;
  end_line: number;
  end_column: number;
  text: string;
}

export interface Finding extends Span {
  code: string;
  severity: string;
  verdict: Verdict | null;
  pattern: string | null;
  region: string | null;
  headline: string;
  details: string[];
  related: (Span & { message: string })[];
  fix: Fix | null;
  /** Every change that ends it, best first. */
  fixes?: Fix[];
}

export interface Fix {
  title: string;
  edits: Edit[];
}

export interface Liveness {
  /** The root value of each step. */
  steps: number[];
  /** The same where nothing is taken; where left out, ops in order. */
  recorded_steps?: number[];
  bytes: number[];
  peak_bytes: number;
  peak_step: number;
  recorded_bytes: number[];
  recorded_peak_bytes: number;
  recorded_peak_step: number;
}

export interface Counts {
  taken: number;
  declined: number;
  blocked: number;
  near_miss: number;
  ops: number;
  opaque: number;
}

export type Totals = Record<'recorded' | 'planned', Record<string, Figure>>;

/** What a plan was asked for, and what it came to: changes with every what-if. */
export interface PlanHead {
  consumer: string;
  fidelity: string;
  machine: string;
  cost: string;
  dialect: string;
  digest: string;
  counts: Counts;
  totals: Totals;
}

export interface Plan extends PlanHead {
  regions: Region[];
  observations: Observation[];
  findings: Finding[];
  /** Null for a what-if that was answered while nobody looked at the curve. */
  liveness: Liveness | null;
}

/** What a what-if never changes: ops as columns. */
export interface Graph {
  paths: string[];
  functions: string[];
  scopes: string[][];
  frames: [number, number, number, number, number, number, string][];
  locations: [number, number[]][];
  spans: number[];
  /** Per location the frame of its module's constructor call; empty where none was seen, and older documents have none. */
  built?: (number | null)[];
  names: string[];
  types: string[];
  ops: { name: number[]; arity: number[]; operands: number[]; type: number[]; location: number[]; attributes: number[] };
  attributes: string[];
  inputs: { value: number; name: string }[];
  parameters: { value: number; name: string }[];
  results: number[];
}

export interface Failure {
  code: string;
  message: string;
  path: string | null;
  line: number | null;
  column: number | null;
  output?: string;
}

/** What a running trace is at; `total` is 0 where the agent has not said. */
export interface Running {
  target: string;
  step: string;
  done: number;
  total: number;
  seconds: number;
}

export interface PlanState {
  id: string;
  target: string;
  revision: number;
  graph: string | null;
  counts: Counts | null;
  error: Failure | null;
  previous: boolean;
  /** Whether the server holds measurements of it. */
  profile: boolean;
}

export interface Skeleton extends Omit<PlanState, 'counts'>, PlanHead {
  paths: string[];
  root: string;
  machines: string[];
}

/** What a plan is asked for; field names are the agent's. */
export interface Options {
  consumer?: string;
  fidelity?: string;
  machine?: string;
  dialect?: string;
  observe?: number[];
  ignore?: number[];
  off?: string[];
}

/** Regions for the wire: a template holds distances from the root, a row [template, root, occurrence, id, key, scope, modules]. */
export interface Packed {
  templates: Omit<Region, 'id' | 'key' | 'root' | 'occurrence' | 'scope' | 'modules'>[];
  scope: Region['scope'][];
  modules: NonNullable<Region['modules']>[];
  rows: [number, number, number, string | null, string | null, number, number | null][];
}

export interface Changes extends PlanHead {
  base: number;
  changed: Region[];
  removed: string[];
  order: string[] | null;
  observations: Observation[];
  findings: Finding[];
  liveness: Liveness | null;
}

/** What makes a what-if true beside the fixes of findings. */
export interface AsCode {
  edits: Edit[];
  /** Regions that no comment switches off where they stand. */
  nowhere: string[];
  command: string;
}

/** What runs at a value, in three forms; a form that topos has not says why. */
export interface Phases {
  values: number[];
  region: string | null;
  recorded: PhaseLine[];
  grouped: PhaseLine[] | null;
  grouped_changes?: PhaseLine[];
  grouped_missing?: string;
  nest: PhaseLine[] | null;
  nest_changes?: PhaseLine[];
  nest_missing?: string;
}

export interface PhaseLine {
  value: number;
  text: string;
  /** In the changes of a form: `+` new, `-` gone, empty where the form before has it too. */
  sign?: string;
}

/** What algebra says of a taken region: whether its formula is what was recorded. */
export interface Certificate {
  answer: 'true' | 'false' | 'not provable';
  text: string;
}

/** What runs a taken region on the server's machine. */
export interface KernelListing {
  /** The file that makes the match ready. */
  path: string;
  /** The processor it is compiled for. */
  target: string;
  /** Whether it was run once on sample values, to see how its kernels are started. */
  ran: boolean;
  sample_bytes: number;
  kernels: KernelText[];
}

export interface KernelText {
  name: string;
  variant: string[];
  path: string;
  compiler: 'numba' | 'llvm';
  text: string;
  generated: string | null;
  starts: { threads: number; words: Record<string, number> }[];
}
