/** What brings a plan onto the page: what the server tells, what an address asks, what a reader picks; and what of a question and a view a save leaves. */

import { KNOWN_SCHEMA, type PlanState, UnknownSchema } from '../data/document';
import { comparison, programs, renumbered } from '../data/comparison';
import type { PlanEvent } from '../data/listening';
import { Model } from '../data/model';
import { buildTree } from '../data/scopes';
import { Refusal } from '../data/source';
import { openedAtFirst } from './opening';
import { type Drawn, type Move, numbered, type Numbering, reselected } from './renamed';
import { leftOut, unread, type Vetted, vetPlans, vetView } from './strangers';
import { read, type View } from './url';
import type { Viewer } from './viewer.svelte';
import { viewOf } from './viewing';
import { optionsOf } from './whatif.svelte';

export class Loading {
  /** Whether values mean something else from here on. */
  private renumber = false;
  private wanted: View = {};
  /** The address that the page read or wrote last: another one is the reader's, who is about to be followed there. */
  address = '';
  /** What the address names that is not here, as it is found on the way. */
  private strange: string[] = [];
  private turn = 0;
  /** What is being loaded: a plan and its revision. */
  private underway = '';
  /** How often it was asked which plans there are, and the newest of these questions that was answered. */
  private asked = 0;
  private told = 0;

  constructor(private readonly viewer: Viewer) {}

  /** Whether another plan is about to stand on the page. */
  get running(): boolean {
    return this.underway !== '';
  }

  async start(): Promise<void> {
    this.want(location.hash);
    const opened = new Promise<void>((resolve) => {
      this.viewer.source.listen((event) => {
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
    const { viewer } = this;
    if (event.kind === 'lost') viewer.connected = false;
    else if (event.kind === 'broken') viewer.trouble = { code: 'internal', message: event.message };
    else if (event.kind === 'tracing') {
      viewer.tracing.heard(event.running);
      if (!event.running) await this.refresh();
    } else if (event.kind === 'open') {
      const back = !viewer.connected;
      viewer.connected = true;
      if (back) await this.refresh();
    } else if (event.kind === 'saved') viewer.tracing.saved = event.files;
    else if (event.kind === 'plan') {
      const files = event.changed_files.join(', ');
      if (files && event.id === viewer.planId) viewer.status = `${files} saved: ${event.failed ? 'it does not record' : 'the plan is new'}`;
    } else if (event.kind === 'traced') await this.refresh();
  }

  /** Asks what is traced and which plans there are, and loads the one for the page where it has changed. */
  async refresh(): Promise<void> {
    const { viewer } = this;
    const turn = ++this.asked;
    const state = viewer.tracing.ask();
    let next: PlanState | undefined;
    try {
      if (this.wanted.plan !== undefined) await state;
      const more = viewer.tracing.running !== null; // known before the list: what is missing in it then may come
      const plans = await viewer.source.plans();
      await state;
      if (turn < this.told) return; // a later question was answered before
      this.told = turn;
      viewer.plans = plans;
      next = this.next(more);
    } catch (error) {
      viewer.fail(error);
      return;
    } finally {
      viewer.answered = true;
    }
    if (!next || this.underway === this.naming(next)) return;
    const outdated = viewer.compared !== null && viewer.compared.revision !== this.revision(viewer.compared.name);
    if (next.id !== viewer.planId || next.revision !== viewer.skeleton?.revision || outdated) await this.show(next.id);
  }

  /** The plan for the page: the one that is asked for, which may still come; else the one that is drawn; else the first that can be. */
  private next(more: boolean): PlanState | undefined {
    const { wanted } = this;
    const { planId, plans } = this.viewer;
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
    const { viewer } = this;
    if (viewer.planId === null) return;
    viewer.whatif.forget();
    this.renumber = true; // values mean something else from here on
    this.wanted = name === null ? {} : { compare: name };
    await this.show(viewer.planId);
  }

  private async show(id: string): Promise<void> {
    const { viewer } = this;
    const turn = ++this.turn;
    const state = viewer.plans.find((plan) => plan.id === id);
    const same = viewer.planId === id;
    const there = same && viewer.model !== null;
    viewer.planId = id;
    if (!state?.graph) {
      this.underway = '';
      if (!same) [viewer.compared, viewer.model, viewer.tree, viewer.plan, viewer.base, viewer.scene, viewer.skeleton] = [null, null, null, null, null, null, null];
      return;
    }
    this.underway = this.naming(state);
    viewer.busy = 'loading the plan';
    this.vet(vetPlans(this.wanted, viewer.plans, id));
    const compare = this.wanted.compare ?? (same && !this.renumber ? viewer.compared?.name : undefined);
    try {
      const fresh = !same || state.graph !== viewer.skeleton?.graph || !viewer.model || this.renumber || viewer.compared !== null || compare !== undefined;
      const { source, whatif } = viewer;
      const told = numbered(whatif.options) || viewer.selection?.kind === 'op';
      const since = same && told ? viewer.skeleton?.graph : null;
      const other = viewer.plans.find((plan) => plan.id === compare && plan.id === viewer.compared?.name);
      const [skeleton, own, ownGraph, diff, move, moveOfOther] = await Promise.all([
        source.skeleton(id), source.plan(id), fresh && !compare ? source.graph(id, state.graph) : null,
        compare ? source.diff(compare, id) : null, since ? this.move(id, since, state.graph) : null,
        since && other ? this.move(other.id, viewer.compared!.graphBefore, other.graph) : null,
      ]);
      if (skeleton.schema !== undefined && skeleton.schema !== KNOWN_SCHEMA) throw new UnknownSchema(skeleton.schema);
      const graph = diff ? { ...diff.graph } : ownGraph;
      const plan = diff ? renumbered(own, diff.of_after) : own;
      if (turn !== this.turn) return;
      const kept = same ? this.remember() : {};
      const before = this.drawn();
      const was = same ? this.numbering() : null;
      viewer.skeleton = skeleton;
      viewer.texts.reset();
      this.renumber = false;
      const merged = (diff ? compare : undefined) !== viewer.compared?.name;
      viewer.compared = diff ? comparison(compare!, diff, this.revision(compare!)) : null;
      if (kept.selection !== undefined) {
        kept.selection = reselected(kept.selection, before, this.drawn(), [move, moveOfOther].filter((one) => one !== null));
        if (kept.selection === undefined) viewer.status = `the op that was selected is not in the ${merged ? 'plan that is shown now' : 'saved program'}`;
      }
      if (graph) {
        viewer.model = new Model(graph, viewer.compared ? programs(viewer.compared, 'both') : []);
        viewer.tree = buildTree(viewer.model);
        viewer.firstOpen = openedAtFirst(viewer.tree);
        viewer.scene = null;
      }
      viewer.base = viewer.plan = plan;
      if (!merged && viewer.side !== 'both') viewer.showSide(viewer.side);
      else viewer.showSide(this.wanted.side ?? 'both');
      this.vet(vetView(this.wanted, { skeleton, tree: viewer.tree!, model: viewer.model!, plan }));
      if (diff) whatif.forget();
      else whatif.bring(optionsOf(this.wanted), was, move?.moved ?? null);
      const { selection } = this.wanted;
      viewer.restore({ ...kept, ...this.wanted });
      if (graph) await viewer.relayout();
      if (!this.wanted.camera && (!there || merged)) {
        viewer.fitRequest++;
        const asked = this.wanted.selection === undefined ? undefined : (viewer.region?.root ?? (viewer.selection?.kind === 'op' ? viewer.selection.value : undefined));
        if (asked !== undefined) await viewer.bring(asked); // a link that names no camera is about what it names
      }
      this.wanted = {};
      void viewer.profiling.fromServer();
      if (!diff) await whatif.again();
      if (turn !== this.turn) return;
      viewer.selection ??= viewer.parseSelection(selection); // of a region that is there by what is asked alone
      this.tellStrange(selection);
    } catch (error) {
      if (error instanceof Refusal && error.status === 409) setTimeout(() => void this.refresh()); // traced again meanwhile
      else viewer.fail(error);
    } finally {
      if (turn === this.turn) {
        viewer.busy = null;
        this.underway = '';
      }
    }
  }

  /** Takes what an address asks for. */
  private want(fragment: string): void {
    this.address = fragment;
    this.wanted = read(fragment);
    this.strange = unread(fragment);
    this.viewer.asks(this.wanted);
  }

  /** Leaves out of the address what is not here. */
  private vet({ view, strange }: Vetted): void {
    this.wanted = view;
    this.strange.push(...strange);
  }

  /** Tells what was left out of the address, a selection of what is not here too, and has it written anew. */
  private tellStrange(selection: string | undefined): void {
    const { viewer } = this;
    if (selection !== undefined && !viewer.parseSelection(selection)) this.strange.push(`sel=${selection}`);
    if (!this.strange.length) return;
    viewer.notice = viewer.status = leftOut(this.strange);
    this.strange = [];
    viewer.corrected++;
  }

  /** What values and rows of observations mean now: they mean the same while the program is the same. */
  private numbering(): Numbering | null {
    const { viewer } = this;
    return viewer.skeleton && viewer.base ? { graph: viewer.skeleton.graph, observations: viewer.base.observations } : null;
  }

  /** The programs in the drawing, the page's own first. */
  private drawn(): Drawn[] {
    const { skeleton, compared } = this.viewer;
    const own = { graph: skeleton?.graph ?? null, boxes: compared?.ofAfter ?? null };
    return compared ? [own, { graph: compared.graphBefore, boxes: compared.ofBefore }] : [own];
  }

  /** Where the values of a graph that a save has replaced stand now; null where it is there as it was. */
  private async move(id: string, from: string | null, to: string | null): Promise<Move | null> {
    return from === null || from === to ? null : { from, to, moved: await this.viewer.source.renumbered(id, from) };
  }

  /** Of the plan that another one is compared with; none where that is this one before its last save. */
  private revision(compared: string): number | undefined {
    return this.viewer.plans.find((plan) => plan.id === compared)?.revision;
  }

  /** What is being loaded: a plan, and the other one that it is compared with, as they are now. */
  private naming(plan: PlanState): string {
    const other = this.wanted.compare ?? this.viewer.compared?.name ?? '';
    return `${plan.id}@${plan.revision} ${other}@${this.revision(other)}`;
  }

  /** What survives a reload of an edited file: keys, not numbers. */
  private remember(): View {
    const { selection, open, shown, hit, order, unfolded, differences, file } = viewOf(this.viewer);
    return { selection, open, shown, query: this.viewer.query, hit, order, unfolded, differences, file };
  }

  /** Goes where the address says, which the reader changed on the same page. */
  private async follow(): Promise<void> {
    const { viewer } = this;
    if (location.hash === viewer.url()) {
      this.address = location.hash;
      return;
    }
    this.want(location.hash);
    if (this.wanted.plan && this.wanted.plan !== viewer.planId) {
      const shown = viewer.planId;
      await this.refresh();
      if (viewer.planId !== shown || this.wanted.plan !== undefined) return; // it is shown now, or may still come
    }
    if (viewer.planId !== null) this.vet(vetPlans(this.wanted, viewer.plans, viewer.planId));
    if (viewer.planId !== null && this.wanted.compare !== viewer.compared?.name) {
      viewer.selection = null;
      this.renumber = true;
      await this.show(viewer.planId);
    } else if (viewer.tree && viewer.model && viewer.skeleton && viewer.base) {
      this.vet(vetView(this.wanted, { skeleton: viewer.skeleton, tree: viewer.tree, model: viewer.model, plan: viewer.base }));
      if (viewer.whatif.allowed) await viewer.whatif.follow(optionsOf(this.wanted));
      const { selection } = this.wanted;
      viewer.restore(this.wanted);
      this.wanted = {};
      await viewer.relayout();
      viewer.focusRequest++;
      this.tellStrange(selection);
    }
  }
}
