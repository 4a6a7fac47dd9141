/**
 * The page's state: one plan, one selection that every pane follows, and what is open. What-ifs and texts have files
 * of their own. Longer than most because loading, selecting and opening end in the same few fields.
 */

import { KNOWN_SCHEMA, UnknownSchema, VERDICTS, type Certificate, type Failure, type KernelListing, type Plan, type PlanState, type Region, type Skeleton, type Verdict } from '../data/document';
import { Model } from '../data/model';
import { PlanIndex } from '../data/planning';
import { buildTree, type Tree } from '../data/scopes';
import { comparison, type Comparison, renumbered, type Side } from '../data/comparison';
import type { PlanEvent } from '../data/listening';
import { Refusal, type Source } from '../data/source';
import type { FarView } from '../draw/far';
import { LayoutClient } from '../layout/client';
import type { Scene } from '../layout/scene';
import { AskedOfRegion } from './asked.svelte';
import type { Camera } from './camera';
import { Finding } from './finding.svelte';
import { nameOf, openOf, type Selection, selectionOf, shownOf } from './naming';
import { openedAtFirst, reveal } from './opening';
import { Profiling } from './profiling.svelte';
import type { Numbering } from './renamed';
import { Settings } from './settings.svelte';
import { Showing } from './showing.svelte';
import { Texts } from './texts.svelte';
import { leftOut, unread, vetPlans, vetView, type Vetted } from './strangers';
import { Tracing } from './tracing.svelte';
import { type Pane, read, write, type View } from './url';
import { viewOf } from './viewing';
import { optionsOf, WhatIf } from './whatif.svelte';

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
  private renumber = false;
  firstOpen: ReadonlySet<number> = new Set();
  private wanted: View = {};
  /** What the address names that is not here, as it is found on the way. */
  private strange: string[] = [];
  private loading = 0;
  /** What is being loaded: a plan and its revision. */
  private underway = '';
  /** How often it was asked which plans there are, and the newest of these questions that was answered. */
  private asked = 0;
  private told = 0;

  constructor(
    readonly source: Source,
    private readonly layout: LayoutClient,
  ) {
    this.tracing = new Tracing(source, (error) => this.fail(error));
  }

  // --- loading -------------------------------------------------------------------------------------------------------

  async start(): Promise<void> {
    this.want(location.hash);
    const opened = new Promise<void>((resolve) => {
      this.source.listen((event) => {
        if (event.kind === 'open') resolve();
        void this.heard(event);
      });
    });
    addEventListener('hashchange', () => void this.follow());
    await this.refresh();
    await opened;
    await this.refresh(); // what was traced before anybody listened
  }

  private async heard(event: PlanEvent): Promise<void> {
    if (event.kind === 'lost') this.connected = false;
    else if (event.kind === 'broken') this.trouble = { code: 'internal', message: event.message };
    else if (event.kind === 'tracing') {
      this.tracing.heard(event.running);
      if (!event.running) await this.refresh();
    } else if (event.kind === 'open') {
      const back = !this.connected;
      this.connected = true;
      if (back) await this.refresh();
    } else if (event.kind === 'saved') this.tracing.saved = event.files;
    else if (event.kind === 'plan') {
      const files = event.changed_files.join(', ');
      if (files && event.id === this.planId) this.status = `${files} saved: ${event.failed ? 'it does not record' : 'the plan is new'}`;
    } else if (event.kind === 'traced') await this.refresh();
  }

  /** Asks what is traced and which plans there are, and loads the one for the page where it has changed. */
  async refresh(): Promise<void> {
    const turn = ++this.asked;
    const state = this.tracing.ask();
    let next: PlanState | undefined;
    try {
      if (this.wanted.plan !== undefined) await state;
      const more = this.tracing.running !== null; // known before the list: what is missing in it then may come
      const plans = await this.source.plans();
      await state;
      if (turn < this.told) return; // a later question was answered before
      this.told = turn;
      this.plans = plans;
      next = this.next(more);
    } catch (error) {
      this.fail(error);
      return;
    } finally {
      this.answered = true;
    }
    if (!next || this.underway === naming(next)) return;
    if (next.id !== this.planId || next.revision !== this.skeleton?.revision) await this.show(next.id);
  }

  /** The plan for the page: the one that is asked for, which may still come; else the one that is drawn; else the first that can be. */
  private next(more: boolean): PlanState | undefined {
    const { wanted, planId, plans } = this;
    if (wanted.plan !== undefined) {
      const asked = plans.find((plan) => plan.id === wanted.plan);
      if (asked || more) return asked;
      this.strange.push(`plan=${wanted.plan}`);
      this.wanted = { ...wanted, plan: undefined };
    }
    const shown = plans.find((plan) => plan.id === planId);
    return shown?.graph ? shown : (plans.find((plan) => plan.graph) ?? shown ?? plans[0]);
  }

  /** Shows a plan that the reader picks, as soon as there is one, instead of what the address asks for. */
  async pick(id: string): Promise<void> {
    this.strange = [];
    this.wanted = { plan: id };
    await this.show(id);
  }

  /** Merges another plan into the drawing: another target's, or this one's before the last save; null ends it. */
  async compare(name: string | null): Promise<void> {
    if (this.planId === null) return;
    this.whatif.forget();
    this.selection = null;
    this.renumber = true; // values mean something else from here on
    this.wanted = name === null ? {} : { compare: name };
    await this.show(this.planId);
  }

  async show(id: string): Promise<void> {
    const turn = ++this.loading;
    const state = this.plans.find((plan) => plan.id === id);
    const same = this.planId === id;
    const drawn = same && this.model !== null;
    this.planId = id;
    if (!state?.graph) {
      this.underway = '';
      if (!same) [this.compared, this.model, this.tree, this.plan, this.base, this.scene, this.skeleton] = [null, null, null, null, null, null, null];
      return;
    }
    this.underway = naming(state);
    this.busy = 'loading the plan';
    this.vet(vetPlans(this.wanted, this.plans, id));
    const compare = this.wanted.compare ?? (same && !this.renumber ? this.compared?.name : undefined);
    try {
      const fresh = !same || state.graph !== this.skeleton?.graph || !this.model || this.renumber || this.compared !== null || compare !== undefined;
      const [skeleton, own, ownGraph, diff] = await Promise.all([
        this.source.skeleton(id), this.source.plan(id), fresh && !compare ? this.source.graph(id, state.graph) : null,
        compare ? this.source.diff(compare, id) : null,
      ]);
      if (skeleton.schema !== undefined && skeleton.schema !== KNOWN_SCHEMA) throw new UnknownSchema(skeleton.schema);
      const graph = diff ? { ...diff.graph } : ownGraph;
      const plan = diff ? renumbered(own, diff.of_after) : own;
      if (turn !== this.loading) return;
      const kept = same ? this.remember() : {};
      const was = same ? this.numbering() : null;
      this.skeleton = skeleton;
      this.texts.reset();
      this.renumber = false;
      const merged = (diff ? compare : undefined) !== this.compared?.name;
      this.compared = diff ? comparison(compare!, diff) : null;
      if (graph) {
        this.model = new Model(graph);
        this.tree = buildTree(this.model);
        this.firstOpen = openedAtFirst(this.tree);
        this.scene = null;
      }
      this.base = this.plan = plan;
      if (!merged && this.side !== 'both') this.showSide(this.side);
      else this.showSide(this.wanted.side ?? 'both');
      this.vet(vetView(this.wanted, { skeleton, tree: this.tree!, model: this.model!, plan }));
      if (diff) this.whatif.forget();
      else this.whatif.bring(optionsOf(this.wanted), was);
      const { selection } = this.wanted;
      this.restore({ ...kept, ...this.wanted });
      if (graph) await this.relayout();
      if (!this.wanted.camera && (!drawn || merged)) {
        this.fitRequest++;
        const asked = this.wanted.selection === undefined ? undefined : (this.region?.root ?? (this.selection?.kind === 'op' ? this.selection.value : undefined));
        if (asked !== undefined) await this.bring(asked); // a link that names no camera is about what it names
      }
      this.wanted = {};
      void this.profiling.fromServer();
      if (!diff) await this.whatif.again();
      if (turn !== this.loading) return;
      this.selection ??= this.parseSelection(selection); // of a region that is there by what is asked alone
      this.tellStrange(selection);
    } catch (error) {
      if (error instanceof Refusal && error.status === 409) setTimeout(() => void this.refresh()); // traced again meanwhile
      else this.fail(error);
    } finally {
      if (turn === this.loading) {
        this.busy = null;
        this.underway = '';
      }
    }
  }

  /** Takes what an address asks for. */
  private want(fragment: string): void {
    this.wanted = read(fragment);
    this.strange = unread(fragment);
    this.asks(this.wanted);
  }

  /** Leaves out of the address what is not here. */
  private vet({ view, strange }: Vetted): void {
    this.wanted = view;
    this.strange.push(...strange);
  }

  /** Tells what was left out of the address, a selection of what is not here too, and has it written anew. */
  private tellStrange(selection: string | undefined): void {
    if (selection !== undefined && !this.parseSelection(selection)) this.strange.push(`sel=${selection}`);
    if (!this.strange.length) return;
    this.notice = this.status = leftOut(this.strange);
    this.strange = [];
    this.corrected++;
  }

  /** What values and rows of observations mean now: they mean the same while the program is the same. */
  private numbering(): Numbering | null {
    return this.skeleton && this.base ? { graph: this.skeleton.graph, observations: this.base.observations } : null;
  }

  /** What survives a reload of an edited file: keys, not numbers. */
  private remember(): View {
    const { selection, open, shown, hit, order, unfolded, differences, file } = viewOf(this);
    return { selection, open, shown, query: this.query, hit, order, unfolded, differences, file };
  }

  /** Searches and filters as a view does, and shows the panes that it shows. */
  private asks(view: View): void {
    this.query = view.query ?? '';
    this.filter = new Set(view.filter ?? VERDICTS);
    [this.pane, this.memory, this.phases, this.candidates] = [view.pane ?? null, view.memory ?? false, view.phases ?? false, view.candidates ?? false];
    this.profiling.drawn = !view.unmeasured;
  }

  private restore(view: View): void {
    const tree = this.tree!;
    this.open = openOf(view.open ?? [], tree, this.firstOpen);
    this.shown = shownOf(view.shown ?? {}, tree);
    if (view.camera) this.camera = { x: view.camera[0], y: view.camera[1], k: view.camera[2] };
    this.selection = this.parseSelection(view.selection);
    this.showing.restore(view, tree, this.skeleton?.paths ?? []);
  }

  /** Whether another plan is about to stand on the page. */
  get loadingPlan(): boolean {
    return this.underway !== '';
  }

  fail(error: unknown): void {
    this.trouble = error instanceof Refusal ? error.problem : error instanceof UnknownSchema ? { code: 'schema', message: error.message } : { code: 'page', message: String(error) };
  }

  /** Shows one of two compared plans, or both; nothing moves. */
  showSide(side: Side): void {
    this.side = this.compared ? side : 'both';
    this.texts.reset();
    if (this.compared) this.replan(side === 'a' ? this.compared.before : this.base!);
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

  private async follow(): Promise<void> {
    if (location.hash === this.url()) return;
    this.want(location.hash);
    if (this.wanted.plan && this.wanted.plan !== this.planId) {
      const shown = this.planId;
      await this.refresh();
      if (this.planId !== shown || this.wanted.plan !== undefined) return; // it is shown now, or may still come
    }
    if (this.planId !== null) this.vet(vetPlans(this.wanted, this.plans, this.planId));
    if (this.planId !== null && this.wanted.compare !== this.compared?.name) {
      this.selection = null;
      this.renumber = true;
      await this.show(this.planId);
    } else if (this.tree && this.model && this.skeleton && this.base) {
      this.vet(vetView(this.wanted, { skeleton: this.skeleton, tree: this.tree, model: this.model, plan: this.base }));
      if (this.whatif.allowed) await this.whatif.follow(optionsOf(this.wanted));
      const { selection } = this.wanted;
      this.restore(this.wanted);
      this.wanted = {};
      await this.relayout();
      this.focusRequest++;
      this.tellStrange(selection);
    }
  }

  selectionText(): string | undefined {
    return nameOf(this.selection, this.index, this.tree);
  }

  private parseSelection(text: string | undefined): Selection | null {
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
    const { model, tree } = this;
    if (!model || !tree) return;
    const scene = await this.layout.scene(model, tree, { scopes: this.open, shown: this.shown });
    if (scene && tree === this.tree) this.scene = scene;
  }
}

const naming = (plan: PlanState): string => `${plan.id}@${plan.revision}`;
