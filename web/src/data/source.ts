/** Where the page's data come from: the server, or the file itself when the page was exported. */

import type { AsCode, Certificate, Changes, Failure, Graph, KernelListing, Options, Phases, Packed, Plan, PlanState, Region, Running, Skeleton } from './document';
import { listen, type PlanEvent, type Polled } from './listening';
import { unpack } from './packing';
import type { Bench } from './profile';

export interface Diff {
  before: string;
  after: string;
  legend: ('same' | 'added' | 'removed' | 'retyped')[];
  marks: number[];
  of_before: number[];
  of_after: number[];
  /** The rows of the earlier plan's places, in its own numbering. */
  locations_before: number[];
  /** Of retyped ops, by merged value. */
  types_before: Record<string, string>;
  /** The earlier plan, in its own numbering. */
  plan_before: Plan;
  paths_before: string[];
  graph: Graph;
  graph_before: string | null;
  graph_after: string | null;
  regions: { before: Region | null; after: Region | null }[];
}

/** A text of two plans: blocks of lines [tag, begin and end before, begin and end after]. */
export interface AlignedFile {
  path_before: string | null;
  path_after: string | null;
  before: string;
  after: string;
  blocks: ['equal' | 'replace' | 'delete' | 'insert', number, number, number, number][];
}

export interface Source {
  /** Whether plans can be asked for again: false in an exported page. */
  readonly live: boolean;
  plans(): Promise<PlanState[]>;
  skeleton(id: string): Promise<Skeleton>;
  graph(id: string, digest: string): Promise<Graph>;
  plan(id: string): Promise<Plan>;
  /** A traced text, of the plan or of what it was before its last save. */
  text(id: string, path: number, previous?: boolean): Promise<string>;
  whatif(id: string, base: number, options: Options, curve: boolean): Promise<Changes>;
  /** Ends the running question about a plan. */
  cancelWhatif(id: string): Promise<unknown>;
  asCode(id: string, base: number, options: Options): Promise<AsCode>;
  emitted(id: string, base: number, options: Options): Promise<string>;
  profile(id: string): Promise<Bench>;
  phases(id: string, base: number, value: number, options: Options): Promise<Phases>;
  kernels(id: string, base: number, region: string, options: Options): Promise<KernelListing>;
  certificate(id: string, base: number, region: string, options: Options): Promise<Certificate>;
  /** Where the values of the graph before the last save stand now; null where that was another graph. */
  renumbered(id: string, since: string): Promise<readonly (number | null)[] | null>;
  diff(a: string, b: string): Promise<Diff>;
  texts(a: string, b: string, of: 'sources' | 'emitted'): Promise<AlignedFile[]>;
  tracing(): Promise<TraceState>;
  cancelTrace(): Promise<TraceState>;
  traceAgain(): Promise<TraceState>;
  /** Where the whole plan can be fetched as one file, if anywhere. */
  exported(id: string): Promise<Blob>;
  /** Calls back on every change; gives a function that stops it. */
  listen(changed: (event: PlanEvent) => void): () => void;
}

export interface TraceState {
  targets: string[];
  running: Running | null;
}

/** What an exported page holds. */
export interface Exported {
  state: PlanState;
  skeleton: Skeleton;
  graph: Graph;
  plan: PackedPlan;
  sources: string[];
  emitted: string | null;
  /** Why nothing is emitted. */
  refusal: string | null;
}

/** Reads what an exported page holds; asks nobody. */
export class InlineSource implements Source {
  readonly live = false;
  constructor(private readonly data: Exported) {}

  plans = async (): Promise<PlanState[]> => [this.data.state];
  skeleton = async (): Promise<Skeleton> => this.data.skeleton;
  graph = async (): Promise<Graph> => this.data.graph;
  plan = async (): Promise<Plan> => unpacked(this.data.plan);
  text = async (_id: string, path: number): Promise<string> => this.data.sources[path] ?? '';
  whatif = (): Promise<Changes> => Promise.reject(OFFLINE);
  cancelWhatif = (): Promise<unknown> => Promise.reject(OFFLINE);
  asCode = (): Promise<AsCode> => Promise.reject(OFFLINE);
  emitted = async (): Promise<string> => {
    if (this.data.emitted === null) throw new Refusal(404, { code: 'offline', message: this.data.refusal ?? 'the export holds no emitted text' });
    return this.data.emitted;
  };
  profile = (): Promise<Bench> => Promise.reject(OFFLINE);
  phases = (): Promise<Phases> => Promise.reject(OFFLINE);
  kernels = (): Promise<KernelListing> => Promise.reject(OFFLINE);
  certificate = (): Promise<Certificate> => Promise.reject(OFFLINE);
  renumbered = (): Promise<null> => Promise.reject(OFFLINE);
  diff = (): Promise<Diff> => Promise.reject(OFFLINE);
  texts = (): Promise<AlignedFile[]> => Promise.reject(OFFLINE);
  tracing = (): Promise<TraceState> => Promise.reject(OFFLINE);
  cancelTrace = (): Promise<TraceState> => Promise.reject(OFFLINE);
  traceAgain = (): Promise<TraceState> => Promise.reject(OFFLINE);
  exported = (): Promise<Blob> => Promise.reject(OFFLINE);
  listen = (): (() => void) => () => {};
}

/** A refusal that the server explained. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly problem: Pick<Failure, 'code' | 'message'>,
  ) {
    super(problem.message);
  }
}

type PackedPlan = Omit<Plan, 'regions'> & { regions: Packed };

const unpacked = (plan: PackedPlan): Plan => ({ ...plan, regions: unpack(plan.regions) });

export class ServerSource implements Source {
  readonly live = true;
  constructor(private readonly token: string) {}

  plans = (): Promise<PlanState[]> => this.ask('plans');
  skeleton = (id: string): Promise<Skeleton> => this.ask(`plans/${id}/skeleton`);
  graph = (id: string, digest: string): Promise<Graph> => this.ask(`plans/${id}/graph?digest=${digest}`);
  plan = async (id: string): Promise<Plan> => unpacked(await this.ask<PackedPlan>(`plans/${id}/regions`));
  text = async (id: string, path: number, previous = false): Promise<string> =>
    (await this.ask<{ text: string }>(`plans/${id}/sources/${path}${previous ? '?previous=true' : ''}`)).text;
  whatif = async (id: string, base: number, options: Options, curve: boolean): Promise<Changes> => {
    const changes = await this.ask<Omit<Changes, 'changed'> & { changed: Packed }>(`plans/${id}/whatif`, { base, options, liveness: curve });
    return { ...changes, changed: unpack(changes.changed) };
  };
  cancelWhatif = (id: string): Promise<unknown> => this.ask(`plans/${id}/whatif/cancel`, {});
  asCode = (id: string, base: number, options: Options): Promise<AsCode> => this.ask(`plans/${id}/ascode`, { base, options });
  emitted = async (id: string, base: number, options: Options): Promise<string> =>
    (await this.ask<{ text: string }>(`plans/${id}/emitted`, { base, options })).text;
  phases = (id: string, base: number, value: number, options: Options): Promise<Phases> => this.ask(`plans/${id}/phases`, { base, value, options });
  profile = (id: string): Promise<Bench> => this.ask(`plans/${id}/profile`);
  kernels = (id: string, base: number, region: string, options: Options): Promise<KernelListing> =>
    this.ask(`plans/${id}/kernels`, { base, region, options });
  certificate = (id: string, base: number, region: string, options: Options): Promise<Certificate> =>
    this.ask(`plans/${id}/certificate`, { base, region, options });
  renumbered = async (id: string, since: string): Promise<readonly (number | null)[] | null> => {
    try {
      return (await this.ask<{ values: (number | null)[] }>(`plans/${id}/renumbered?since=${since}`)).values;
    } catch (error) {
      if (error instanceof Refusal && error.status === 409) return null; // saved more than once since
      throw error;
    }
  };
  diff = async (a: string, b: string): Promise<Diff> => {
    const diff = await this.ask<Omit<Diff, 'plan_before'> & { plan_before: PackedPlan }>(`diff?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);
    return { ...diff, plan_before: unpacked(diff.plan_before) };
  };
  texts = (a: string, b: string, of: 'sources' | 'emitted'): Promise<AlignedFile[]> =>
    this.ask(`diff/${of}?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);

  tracing = (): Promise<TraceState> => this.ask('trace');
  cancelTrace = (): Promise<TraceState> => this.ask('trace/cancel', {});
  traceAgain = (): Promise<TraceState> => this.ask('trace/again', {});

  async exported(id: string): Promise<Blob> {
    const answer = await fetch(`api/v1/plans/${id}/export`, { headers: { authorization: `Bearer ${this.token}` } });
    if (!answer.ok) throw new Refusal(answer.status, await answer.json());
    return answer.blob();
  }

  listen = (changed: (event: PlanEvent) => void): (() => void) =>
    listen(`api/v1/events?token=${encodeURIComponent(this.token)}`, (after) => this.ask<Polled>(`events/poll${after === null ? '' : `?after=${after}`}`), changed);

  private async ask<T>(path: string, body?: unknown): Promise<T> {
    const answer = await fetch(`api/v1/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${this.token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const data = await answer.json();
    if (!answer.ok) throw new Refusal(answer.status, { code: data.code ?? String(answer.status), message: data.message ?? answer.statusText });
    return data as T;
  }
}

const OFFLINE = new Refusal(404, { code: 'offline', message: 'an exported page cannot plan again; open the target with topos view' });
