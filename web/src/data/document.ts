/** The parts of `topos.plan/1` that the page reads, as the server sends them; see docs/formats.md. */

import type { Counts, Edit, Finding, Liveness, Observation, Region, Totals, Verdict } from './plan';

export type * from './plan';

/** The major version of plan documents that the page knows; fields that it does not know are left alone. */
export const KNOWN_SCHEMA = 'topos.plan/1';

export const VERDICTS: readonly Verdict[] = ['blocked', 'declined', 'near_miss', 'taken'];

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
  /** The schema of the document; servers of before do not say. */
  schema?: string;
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
  beside?: number[];
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
  /** What it is called in a list: its name and variant, of a generated one what it computes. */
  title: string;
  variant: string[];
  path: string;
  compiler: 'numba' | 'llvm';
  text: string;
  generated: string | null;
  starts: { threads: number; words: Record<string, number> }[];
}

/** A document of a major version that this page does not know: nothing of it is shown. */
export class UnknownSchema extends Error {
  constructor(found: string) {
    super(`the plan is written as ${found}, and this page reads ${KNOWN_SCHEMA}; reload it, or open the plan with the topos that wrote it`);
  }
}
