/** The page's state: one plan, one selection that every pane follows, and what is open. What brings plans, what-ifs and texts have files of their own. */

import { UnknownSchema, VERDICTS, type Certificate, type Failure, type KernelListing, type Plan, type PlanState, type Region, type Skeleton, type Verdict } from '../data/document';
import type { Model } from '../data/model';
import { PlanIndex } from '../data/planning';
import type { Tree } from '../data/scopes';
import { type Comparison, programs, type Side } from '../data/comparison';
import { Refusal, type Source } from '../data/source';
import type { FarView } from '../draw/far';
import { LayoutClient } from '../layout/client';
import type { Scene } from '../layout/scene';
import { AskedOfRegion } from './asked.svelte';
import type { Camera } from './camera';
import { Finding } from './finding.svelte';
import { Loading } from './loading.svelte';
import { nameOf, openOf, type Selection, selectionOf, shownOf } from './naming';
import { reveal } from './opening';
import { Profiling } from './profiling.svelte';
import { Settings } from './settings.svelte';
import { Showing } from './showing.svelte';
import { Texts } from './texts.svelte';
import { Tracing } from './tracing.svelte';
import { type Pane, write, type View } from './url';
import { viewOf } from './viewing';
import { WhatIf } from './whatif.svelte';

export class Viewer {
  plans = $state.raw<PlanState[]>([]);
  /** Whether the server has said which plans there are. */
  answered = $state(false);
  planId = $state<string | null>(null);
  skeleton = $state.raw<Skeleton | null>(null);
  model = $state.raw<Model | null>(null);
  tree = $state.raw<Tree | null>(null);
  base = $state.raw<Plan | null>(null);
  plan = $state.raw<Plan | null>(null);
  scene = $state.raw<Scene | null>(null);
  selection = $state.raw<Selection | null>(null);
  open = $state.raw<ReadonlySet<number>>(new Set());
  shown = $state.raw<ReadonlyMap<number, number>>(new Map());
  query = $state('');
  filter = $state.raw<ReadonlySet<Verdict>>(new Set<Verdict>(['taken', 'declined', 'blocked', 'near_miss']));
  candidates = $state(false);
  busy = $state<string | null>(null);
  trouble = $state.raw<Pick<Failure, 'code' | 'message'> | null>(null);
  /** What the reader should know and can dismiss: what an address or a question named that is not here. */
  notice = $state<string | null>(null);
  /** Grows when the address holds what is not shown, and must be written anew. */
  corrected = $state(0);
  connected = $state(true);
  status = $state('');
  /** The regions whose verdict a question has just changed. */
  changed = $state.raw<ReadonlySet<string>>(new Set());
  compared = $state.raw<Comparison | null>(null);
  side = $state<Side>('both');
  memory = $state(false);
  phases = $state(false);
  /** What stands below the source. */
  pane = $state<Pane | null>(null);
  camera = $state.raw<Camera>({ x: 24, y: 24, k: 1 });
  /** Grows when the drawing should bring the selection into view. */
  focusRequest = $state(0);
  /** What is drawn on the canvas, where the drawing is seen from far. */
  far = $state.raw<FarView | null>(null);
  fitRequest = $state(0);

  index = $derived(this.plan && this.tree ? new PlanIndex(this.plan, this.tree) : null);
  state = $derived(this.plans.find((plan) => plan.id === this.planId) ?? null);
  /** Whether there is no plan to draw: none was traced yet, or none could be. */
  waiting = $derived(this.answered && !this.plan && !this.state?.graph && this.compared === null);
  changedFromBase = $derived(this.plan !== this.base);
  region = $derived.by((): Region | null => {
    const selection = this.selection;
    return selection?.kind === 'region' ? (this.index?.byId.get(selection.id) ?? null) : null;
  });
  readonly settings = new Settings();
  readonly showing = new Showing();
  readonly finding = new Finding(this);
  readonly whatif = new WhatIf(this);
  readonly texts = new Texts(this);
  readonly certificates = new AskedOfRegion<Certificate>(this, (...asked) => this.source.certificate(...asked));
  readonly kernels = new AskedOfRegion<KernelListing>(this, (...asked) => this.source.kernels(...asked));
  readonly profiling = new Profiling(this);
  readonly tracing: Tracing;
  firstOpen: ReadonlySet<number> = new Set();
  /** What brings plans onto the page. */
  readonly loading: Loading;

  constructor(
    readonly source: Source,
    private readonly layout: LayoutClient,
  ) {
    this.tracing = new Tracing(source, (error) => this.fail(error));
    this.loading = new Loading(this);
  }

  /** Searches and filters as a view does, and shows the panes that it shows. */
  asks(view: View): void {
    this.query = view.query ?? '';
    this.filter = new Set(view.filter ?? VERDICTS);
    [this.pane, this.memory, this.phases, this.candidates] = [view.pane ?? null, view.memory ?? false, view.phases ?? false, view.candidates ?? false];
    this.profiling.drawn = !view.unmeasured;
  }

  restore(view: View): void {
    const tree = this.tree!;
    this.open = openOf(view.open ?? [], tree, this.firstOpen);
    this.shown = shownOf(view.shown ?? {}, tree);
    if (view.camera) this.camera = { x: view.camera[0], y: view.camera[1], k: view.camera[2] };
    this.selection = this.parseSelection(view.selection);
    this.showing.restore(view, tree, this.skeleton?.paths ?? []);
  }

  fail(error: unknown): void {
    this.trouble = error instanceof Refusal ? error.problem : error instanceof UnknownSchema ? { code: 'schema', message: error.message } : { code: 'page', message: String(error) };
  }

  /** Shows one of two compared plans, or both; nothing moves. */
  showSide(side: Side): void {
    this.side = this.compared ? side : 'both';
    this.texts.reset();
    if (!this.compared) return;
    this.model = this.model!.seenBy(programs(this.compared, side));
    this.replan(side === 'a' ? this.compared.before : this.base!);
  }

  /** Which box a value of the plan that is shown is. */
  boxOf(value: number): number {
    const { compared, side } = this;
    return compared ? (side === 'a' ? compared.ofBefore : compared.ofAfter)[value] : value;
  }

  /** The value of the plan that is shown that a box is, null where only the other plan has it. */
  valueOf(box: number): number | null {
    const { compared, side } = this;
    if (!compared) return box;
    const value = compared.seen[side === 'a' ? 'a' : 'b'].numbers[box];
    return value < 0 ? null : value;
  }

  /** Shows another plan of the same graph; the selection stays on the same region. */
  replan(next: Plan): void {
    const key = this.selectionText();
    this.plan = next;
    if (this.selection?.kind === 'region') this.selection = this.parseSelection(key);
  }

  // --- the URL -------------------------------------------------------------------------------------------------------

  url(): string {
    return `#${write(viewOf(this))}`;
  }

  selectionText(): string | undefined {
    return nameOf(this.selection, this.index, this.tree);
  }

  parseSelection(text: string | undefined): Selection | null {
    return selectionOf(text, this.index, this.tree, this.model);
  }

  // --- selecting and opening -----------------------------------------------------------------------------------------

  selectRegion(id: string, bring = true): void {
    const region = this.index?.byId.get(id);
    if (!region) return;
    this.showing.followSelection();
    this.selection = { kind: 'region', id };
    if (bring) void this.bring(region.root);
  }

  selectOp(value: number, bring = true): void {
    this.showing.followSelection();
    this.selection = { kind: 'op', value };
    if (bring) void this.bring(value);
  }

  selectScope(scope: number): void {
    this.selection = { kind: 'scope', scope };
  }

  /** Opens what hides a value and moves the drawing to it. */
  async bring(value: number): Promise<void> {
    const { tree, scene } = this;
    if (!tree) return;
    if (!scene || scene.boxOfOp[tree.owner[value]] < 0) {
      const { open, shown } = reveal(tree, this.open, this.shown, value);
      this.open = open;
      this.shown = shown;
      await this.relayout();
    }
    this.focusRequest++;
  }

  async toggle(scope: number): Promise<void> {
    const open = new Set(this.open);
    if (open.has(scope)) open.delete(scope);
    else open.add(scope);
    this.open = open;
    await this.relayout();
  }

  async showInstance(fold: number, instance: number): Promise<void> {
    this.shown = new Map(this.shown).set(fold, instance);
    if (!this.open.has(fold)) this.open = new Set(this.open).add(fold);
    await this.relayout();
  }

  async openAll(wide: boolean): Promise<void> {
    if (!this.tree) return;
    this.open = wide ? new Set(this.tree.scopes.map((scope) => scope.id)) : new Set([0]);
    await this.relayout();
    this.fitRequest++;
  }

  async relayout(): Promise<void> {
    const { tree, compared } = this;
    const model = compared ? this.model?.seenBy(programs(compared, 'both')) : this.model; // nothing moves with the side that is shown
    if (!model || !tree) return;
    const scene = await this.layout.scene(model, tree, { scopes: this.open, shown: this.shown });
    if (scene && tree === this.tree) this.scene = scene;
  }
}
