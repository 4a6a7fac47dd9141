/** Measurements of `topos bench` (`topos.bench/1`), laid over a plan; measured figures stay apart from modelled ones. */

import type { Figure, Plan, Region } from './document';
import type { Tree } from './scopes';

export interface Spread {
  minimum: number;
  lower: number;
  median: number;
  upper: number;
}

/** What one contender was measured to take. */
export interface Contender {
  contender: string;
  threads: number;
  clock: 'cpu' | 'wall';
  seconds: Spread | null;
  runs: number;
  failure: string | null;
}

interface Row {
  id: string;
  verdict: string;
  seconds: Figure | null;
  recorded_seconds: Figure | null;
  figures: Contender[];
  alike: string[];
}

export interface Bench {
  schema: string;
  target: string;
  digest: string;
  consumer: string;
  fidelity: string;
  inputs: string;
  host: { processor: string; processors: number; load: number | null };
  model: Contender[];
  regions: Row[];
  profile: { runs: number; threads: number; clock: string; steps: { value: number; region: string | null; seconds: Figure }[]; recorded: { value: number; seconds: Figure }[] };
  file?: string;
}

/** Reads a dropped file; throws what is wrong with it. */
export function parseBench(text: string, file: string): Bench {
  let found: Partial<Bench> | null;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (found?.schema !== 'topos.bench/1') throw new Error(`${file} is no profile: its schema is ${JSON.stringify(found?.schema ?? null)}, not "topos.bench/1"; write one with topos bench TARGET --json`);
  const timed = (rows: unknown): boolean =>
    Array.isArray(rows) && rows.every((row) => Number.isInteger(row?.value) && row.seconds?.basis === 'measured' && row.seconds.unit === 'second' && Number.isFinite(row.seconds.value));
  if (!Array.isArray(found.regions) || !timed(found.profile?.steps) || !timed(found.profile?.recorded)) throw new Error(`${file} is no profile: its rows are no measured seconds`);
  return { ...(found as Bench), file };
}

/** One file's measurements by region, op and scope of a plan with the same digest. */
export class Profile {
  private readonly rows = new Map<string, Row>();
  private readonly alike = new Map<string, Row>();
  private readonly steps = new Map<number, number>();
  private readonly recordedOps = new Map<number, number>();
  private readonly upTo: Float64Array;
  /** Of all steps of one run. */
  readonly total: number;

  constructor(
    readonly bench: Bench,
    tree: Tree,
  ) {
    for (const row of bench.regions) {
      this.rows.set(row.id, row);
      for (const other of row.alike) this.alike.set(other, row);
    }
    for (const { value, seconds } of bench.profile.steps) this.steps.set(value, seconds.value);
    for (const { value, seconds } of bench.profile.recorded) this.recordedOps.set(value, seconds.value);
    this.upTo = new Float64Array(tree.order.length + 1);
    tree.order.forEach((value, i) => (this.upTo[i + 1] = this.upTo[i] + (this.steps.get(value) ?? 0)));
    this.total = this.upTo[tree.order.length];
  }

  /** Whether a plan takes what was taken when this was measured: only then do a run's steps belong to it. */
  belongsTo(plan: Plan): boolean {
    if (plan.consumer !== this.bench.consumer || plan.fidelity !== this.bench.fidelity) return false;
    const taken = new Set(this.bench.regions.filter((row) => row.verdict === 'taken').map((row) => row.id));
    const now = plan.regions.filter((region) => region.verdict === 'taken');
    return now.length === taken.size && now.every((region) => taken.has(region.id));
  }

  /** The region's kernel within a run, where it is taken now as it was then; null where that is not known. */
  taken(region: Region): number | null {
    const row = this.rows.get(region.id);
    if (!row || row.verdict !== 'taken' || region.verdict !== 'taken' || region.consumer !== this.bench.consumer) return null;
    return row.seconds?.value ?? null;
  }

  /** Its recorded ops within a run of the interpreter. */
  recorded(region: Region): number | null {
    return this.rows.get(region.id)?.recorded_seconds?.value ?? null;
  }

  /** What it was measured to take alone, and what else could run it: its own figures, or those of a region of equal shapes. */
  figures(region: Region): { rows: Contender[]; of: string | null } {
    const own = this.rows.get(region.id);
    if (own?.figures.length) return { rows: own.figures, of: null };
    const other = this.alike.get(region.id);
    return other ? { rows: other.figures, of: other.id } : { rows: [], of: null };
  }

  /** One op within a run of the interpreter. */
  op(value: number): number | null {
    return this.recordedOps.get(value) ?? null;
  }

  /** One step of a run of the plan, by its root. */
  step(value: number): number | null {
    return this.steps.get(value) ?? null;
  }

  /** All steps whose root lies in a scope. */
  scope(begin: number, end: number): number {
    return this.upTo[end] - this.upTo[begin];
  }
}
