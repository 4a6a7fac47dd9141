/**
 * The page's state: one plan, one selection that every pane follows, what is open, and the stack of what-ifs.
 * Longer than most files because every action of a reader ends here.
 */

import type { Failure, Options, Plan, PlanState, Region, Skeleton, Span, Verdict } from '../data/document';
import { byLoss, seconds } from '../data/figures';
import { Model } from '../data/model';
import { applied, PlanIndex } from '../data/planning';
import { buildTree, type Tree } from '../data/scopes';
import { comparison, type Comparison, renumbered } from '../data/comparison';
import { unified } from '../data/patch';
import { type PlanEvent, Refusal, type Source } from '../data/source';
import { LayoutClient } from '../layout/client';
import type { Scene } from '../layout/scene';
import { parse, regionHolds, searchOps } from '../search/grammar';
import { openedAtFirst, reveal } from './opening';
import { read, write, type View } from './url';

export type Selection = { kind: 'region'; id: string } | { kind: 'op'; value: number } | { kind: 'scope'; scope: number };

export interface Camera {
  x: number;
  y: number;
  k: number;
}

const EMPTY: Options = {};

export interface Settings {
  /** A link with {path}, {line} and {column}. */
  editor: string;
  /** Whether the wheel zooms without Ctrl. */
  wheelZooms: boolean;
}

function stored(): Settings {
  const settings: Settings = { editor: 'vscode://file/{path}:{line}:{column}', wheelZooms: false };
  try {
    return { ...settings, ...JSON.parse(localStorage.getItem('topos') ?? '{}') };
  } catch {
    return settings; // no storage here, or someone else's text in it
  }
}

export class Viewer {
  plans = $state.raw<PlanState[]>([]);
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
  options = $state.raw<Options>(EMPTY);
  past = $state.raw<Options[]>([]);
  query = $state('');
  filter = $state.raw<ReadonlySet<Verdict>>(new Set<Verdict>(['taken', 'declined', 'blocked', 'near_miss']));
  candidates = $state(false);
  busy = $state<string | null>(null);
  trouble = $state.raw<Pick<Failure, 'code' | 'message'> | null>(null);
  connected = $state(true);
  status = $state('');
  texts = $state.raw<ReadonlyMap<number, string>>(new Map());
  emitted = $state.raw<{ key: string; text: string | null; error: string | null } | null>(null);
  compared = $state.raw<Comparison | null>(null);
  memory = $state(false);
  settings = $state.raw<Settings>(stored());
  camera = $state.raw<Camera>({ x: 24, y: 24, k: 1 });
  /** Grows when the drawing should bring the selection into view. */
  focusRequest = $state(0);
  fitRequest = $state(0);

  /** A place that the reader asked to see, besides the selection's own. */
  place = $state.raw<Span | null>(null);
  private file = $state<string | null>(null);

  index = $derived(this.plan && this.tree ? new PlanIndex(this.plan, this.tree) : null);
  state = $derived(this.plans.find((plan) => plan.id === this.planId) ?? null);
  changedFromBase = $derived(this.plan !== this.base);
  region = $derived.by((): Region | null => {
    const selection = this.selection;
    return selection?.kind === 'region' ? (this.index?.byId.get(selection.id) ?? null) : null;
  });
  search = $derived.by(() => {
    const { terms, unknown } = parse(this.query);
    const { model, index } = this;
    if (!terms.length || !model || !index) return { active: false, ops: [] as number[], hits: new Set<number>(), unknown };
    const ops = searchOps(model, terms, (value) => index.of(value));
    return { active: true, ops, hits: new Set(ops), unknown, terms };
  });
  /** The file that the Source pane shows: the reader's choice, else the selection's. */
  shownPath = $derived.by((): string => {
    if (this.place) return this.place.path;
    if (this.file !== null) return this.file;
    if (this.region) return this.region.path;
    if (this.selection?.kind === 'op') return this.model?.span(this.selection.value)?.path ?? '';
    return this.skeleton?.target.replace(/:[^:]*$/, '') ?? '';
  });
  listed = $derived.by((): Region[] => {
    if (!this.plan) return [];
    const { search } = this;
    const shown = this.plan.regions.filter((region) => this.filter.has(region.verdict));
    const found = search.active
      ? shown.filter((r) => r.nodes.some((value) => search.hits.has(value)) || (search.terms ?? []).every((t) => regionHolds(t, r) !== t.negated))
      : shown;
    return byLoss(found);
  });

  private renumber = false;
  private firstOpen: ReadonlySet<number> = new Set();
  private wanted: View = {};
  private loading = 0;

  constructor(
    readonly source: Source,
    private readonly layout: LayoutClient,
  ) {}

  // --- loading -------------------------------------------------------------------------------------------------------

  async start(): Promise<void> {
    this.wanted = read(location.hash);
    this.query = this.wanted.query ?? '';
    if (this.wanted.filter) this.filter = new Set(this.wanted.filter as Verdict[]);
    this.source.listen((event) => void this.heard(event));
    addEventListener('hashchange', () => void this.follow());
    await this.refresh();
  }

  private async heard(event: PlanEvent): Promise<void> {
    if (event.kind === 'lost') this.connected = false;
    else if (event.kind === 'broken') this.trouble = { code: 'internal', message: event.message };
    else if (event.kind === 'open') {
      const back = !this.connected;
      this.connected = true;
      if (back) await this.refresh();
    } else if (event.kind === 'traced') await this.refresh();
  }

  /** Asks which plans there are, and loads the one on the page where it has changed. */
  async refresh(): Promise<void> {
    try {
      this.plans = await this.source.plans();
    } catch (error) {
      this.fail(error);
      return;
    }
    const wanted = this.wanted.plan ?? this.planId;
    const next = this.plans.find((plan) => plan.id === wanted) ?? this.plans.find((plan) => plan.graph) ?? this.plans[0];
    if (!next) return;
    if (next.id !== this.planId || next.revision !== this.skeleton?.revision) await this.show(next.id);
  }

  /** Merges another plan into the drawing: another target's, or this one's before the last save; null ends it. */
  async compare(name: string | null): Promise<void> {
    if (this.planId === null) return;
    this.options = EMPTY;
    this.past = [];
    this.selection = null;
    this.renumber = true; // values mean something else from here on
    this.wanted = name === null ? {} : { compare: name };
    await this.show(this.planId);
  }

  async show(id: string): Promise<void> {
    const turn = ++this.loading;
    const state = this.plans.find((plan) => plan.id === id);
    const same = this.planId === id;
    this.planId = id;
    if (!state?.graph) {
      if (!same) [this.model, this.tree, this.plan, this.base, this.scene, this.skeleton] = [null, null, null, null, null, null];
      return;
    }
    this.busy = 'loading the plan';
    const compare = this.wanted.compare ?? (same && !this.renumber ? this.compared?.name : undefined);
    try {
      const fresh = !same || state.graph !== this.skeleton?.graph || !this.model || this.renumber || this.compared !== null || compare !== undefined;
      const [skeleton, own, ownGraph, diff] = await Promise.all([
        this.source.skeleton(id), this.source.plan(id), fresh && !compare ? this.source.graph(id, state.graph) : null,
        compare ? this.source.diff(compare, id) : null,
      ]);
      const graph = diff ? { ...diff.graph } : ownGraph;
      const plan = diff ? renumbered(own, diff.of_after) : own;
      if (turn !== this.loading) return;
      const kept = same ? this.remember() : {};
      this.skeleton = skeleton;
      this.texts = new Map();
      this.emitted = null;
      this.renumber = false;
      this.compared = diff ? comparison(compare!, diff) : null;
      if (graph) {
        this.model = new Model(graph);
        this.tree = buildTree(this.model);
        this.firstOpen = openedAtFirst(this.tree);
        this.scene = null;
      }
      this.base = this.plan = plan;
      this.restore({ ...kept, ...this.wanted });
      if (graph) await this.relayout();
      if (!this.wanted.camera && (!same || !this.camera)) this.fitRequest++;
      this.wanted = {};
      const asked = this.options;
      if (asked !== EMPTY && !diff) await this.ask(asked, null);
    } catch (error) {
      this.fail(error);
    } finally {
      if (turn === this.loading) this.busy = null;
    }
  }

  /** What survives a reload of an edited file: keys, not numbers. */
  private remember(): View {
    return { selection: this.selectionText(), open: this.openText(), shown: this.shownText() };
  }

  private restore(view: View): void {
    const tree = this.tree!;
    const byKey = new Map(tree.scopes.map((scope) => [scope.key, scope]));
    const open = new Set(this.firstOpen);
    for (const key of view.open ?? []) {
      const scope = byKey.get(key.replace(/^[+-]/, ''));
      if (!scope) continue;
      if (key.startsWith('-')) open.delete(scope.id);
      else open.add(scope.id);
    }
    this.open = open;
    this.shown = new Map(Object.entries(view.shown ?? {}).flatMap(([key, i]) => (byKey.has(key) ? [[byKey.get(key)!.id, i] as const] : [])));
    if (view.consumer || view.fidelity || view.machine || view.observe?.length || view.ignore?.length || view.off?.length) {
      const { consumer, fidelity, machine, observe, ignore, off } = view;
      this.options = defined({ consumer, fidelity, machine, observe, ignore, off });
    } else if (!this.options.consumer && !this.options.fidelity && !this.options.machine) this.options = EMPTY;
    if (view.camera) this.camera = { x: view.camera[0], y: view.camera[1], k: view.camera[2] };
    this.selection = this.parseSelection(view.selection);
  }

  private fail(error: unknown): void {
    this.trouble = error instanceof Refusal ? error.problem : { code: 'page', message: String(error) };
  }

  // --- the URL -------------------------------------------------------------------------------------------------------

  /** Everything that a link must bring back. */
  view(): View {
    const { consumer, fidelity, machine, observe, ignore, off } = this.options;
    return {
      plan: this.planId ?? undefined, selection: this.selectionText(), open: this.openText(), shown: this.shownText(),
      consumer, fidelity, machine, observe, ignore, off, query: this.query || undefined,
      filter: this.filter.size === 4 ? undefined : [...this.filter], compare: this.compared?.name,
      camera: [this.camera.x, this.camera.y, this.camera.k],
    };
  }

  url(): string {
    return `#${write(this.view())}`;
  }

  private async follow(): Promise<void> {
    if (location.hash === this.url()) return;
    this.wanted = read(location.hash);
    if (this.wanted.plan && this.wanted.plan !== this.planId) await this.show(this.wanted.plan);
    else if (this.tree) {
      this.restore(this.wanted);
      this.wanted = {};
      await this.relayout();
      this.focusRequest++;
    }
  }

  private selectionText(): string | undefined {
    const { selection, tree } = this;
    if (!selection) return undefined;
    if (selection.kind === 'region') return `r:${this.index?.byId.get(selection.id)?.key ?? selection.id}`;
    if (selection.kind === 'op') return `o:${selection.value}`;
    return `s:${tree?.scopes[selection.scope].key ?? ''}`;
  }

  private parseSelection(text: string | undefined): Selection | null {
    const { index, model, tree } = this;
    if (!text || !index || !model || !tree) return null;
    const rest = text.slice(2);
    if (text.startsWith('r:')) {
      const region = index.byKey.get(rest) ?? index.byId.get(rest);
      return region ? { kind: 'region', id: region.id } : null;
    }
    if (text.startsWith('o:')) return Number(rest) < model.count ? { kind: 'op', value: Number(rest) } : null;
    const scope = tree.scopes.find(({ key }) => key === rest);
    return scope ? { kind: 'scope', scope: scope.id } : null;
  }

  private openText(): string[] {
    const { tree } = this;
    if (!tree) return [];
    const key = (id: number): string => tree.scopes[id].key;
    return [
      ...[...this.open].filter((id) => !this.firstOpen.has(id)).map((id) => `+${key(id)}`),
      ...[...this.firstOpen].filter((id) => !this.open.has(id)).map((id) => `-${key(id)}`),
    ];
  }

  private shownText(): Record<string, number> {
    return Object.fromEntries([...this.shown].map(([id, i]) => [this.tree!.scopes[id].key, i]));
  }

  // --- selecting and opening -----------------------------------------------------------------------------------------

  selectRegion(id: string, bring = true): void {
    const region = this.index?.byId.get(id);
    if (!region) return;
    [this.place, this.file] = [null, null];
    this.selection = { kind: 'region', id };
    if (bring) void this.bring(region.root);
  }

  selectOp(value: number, bring = true): void {
    [this.place, this.file] = [null, null];
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

  /** The next region of a verdict in trace order, from the selection on; backwards with -1. */
  step(verdict: Verdict, direction: 1 | -1): void {
    const regions = (this.plan?.regions ?? []).filter((region) => region.verdict === verdict).sort((a, b) => a.root - b.root);
    if (!regions.length) {
      this.status = `no ${verdict.replace('_', ' ')} region here`;
      return;
    }
    const at = this.region?.root ?? (this.selection?.kind === 'op' ? this.selection.value : direction > 0 ? -1 : Infinity);
    const next = direction > 0 ? regions.find((r) => r.root > at) : regions.findLast((r) => r.root < at);
    this.selectRegion((next ?? regions[direction > 0 ? 0 : regions.length - 1]).id);
  }

  // --- what-if -------------------------------------------------------------------------------------------------------

  /** Whether an observation row is observed now. */
  isIgnored(row: number): boolean {
    return (this.options.ignore ?? []).includes(row);
  }

  observedNow(value: number): boolean {
    const rows = this.index?.observed.get(value) ?? [];
    return rows.some((row) => !this.isIgnored(row)) || (this.options.observe ?? []).includes(value);
  }

  async toggleObserved(value: number): Promise<void> {
    const base = this.base!;
    const rows = base.observations.flatMap((o, row) => (o.value === value && o.kind !== 'output' ? [row] : []));
    const { observe = [], ignore = [] } = this.options;
    if (this.observedNow(value))
      await this.whatif({ ...this.options, observe: observe.filter((v) => v !== value), ignore: [...new Set([...ignore, ...rows])] });
    else if (rows.length) await this.whatif({ ...this.options, ignore: ignore.filter((row) => !rows.includes(row)) });
    else await this.whatif({ ...this.options, observe: [...observe, value] });
  }

  async whatif(options: Options): Promise<void> {
    await this.ask(defined(options), this.options);
  }

  async undo(): Promise<void> {
    const last = this.past.at(-1);
    if (!last) return;
    this.past = this.past.slice(0, -1);
    await this.ask(last, null);
  }

  async revert(): Promise<void> {
    if (this.options !== EMPTY) await this.ask(EMPTY, this.options);
  }

  private async ask(options: Options, before: Options | null): Promise<void> {
    const { base, skeleton, plan } = this;
    if (!base || !skeleton || !plan) return;
    if (before) this.past = [...this.past, before];
    this.options = Object.keys(options).length ? options : EMPTY;
    this.emitted = null;
    const key = this.selectionText();
    this.busy = 'planning';
    try {
      const next = this.options === EMPTY ? base : applied(base, await this.source.whatif(skeleton.id, skeleton.revision, options));
      this.plan = next;
      if (this.selection?.kind === 'region') this.selection = this.parseSelection(key);
      this.status = difference(plan, next);
    } catch (error) {
      if (error instanceof Refusal && error.status === 409) await this.refresh();
      else this.fail(error);
      if (before) [this.options, this.past] = [before, this.past.slice(0, -1)];
    } finally {
      this.busy = null;
    }
  }

  /** Whether a what-if can be asked: of a server, and in the plan's own numbering. */
  canAsk = $derived.by(() => this.source.live && this.compared === null);

  /** The edits that make the what-if true in the program, file by file; null where a change has no edit. */
  async asCode(): Promise<{ title: string; patch: string } | null> {
    const { base, options, skeleton } = this;
    if (!base || !skeleton) return null;
    const ignored = new Set(options.ignore ?? []);
    const blockers = base.regions.filter((r) => r.observations.length && r.observations.every((row) => ignored.has(row)));
    const moves = (options.observe ?? []).length > 0; // observe elsewhere instead, or stop
    const fixes = base.findings.flatMap((finding) => {
      if (!blockers.some((region) => region.id === finding.region)) return [];
      const known = (finding.fixes ?? (finding.fix ? [finding.fix] : [])).filter((fix) => fix.edits.length);
      return known.find((fix) => fix.edits.some((edit) => edit.text.trim() !== '') === moves) ?? known.slice(0, 1);
    });
    if (!fixes.length) return null;
    const byPath = new Map<string, typeof fixes[number]['edits']>();
    for (const edit of fixes.flatMap((fix) => fix.edits)) {
      const here = byPath.get(edit.path) ?? [];
      if (!here.some((e) => e.line === edit.line && e.column === edit.column && e.text === edit.text)) byPath.set(edit.path, [...here, edit]);
    }
    const patches: string[] = [];
    for (const [path, edits] of byPath) {
      const index = skeleton.paths.indexOf(path);
      if (index < 0) continue;
      patches.push(unified(path, this.texts.get(index) ?? (await this.source.text(skeleton.id, index)), edits));
    }
    return { title: [...new Set(fixes.map((fix) => fix.title))].join('; '), patch: patches.join('') };
  }

  change(settings: Partial<Settings>): void {
    this.settings = { ...this.settings, ...settings };
    try {
      localStorage.setItem('topos', JSON.stringify(this.settings));
    } catch {
      this.status = 'this browser keeps no settings'; // private windows refuse storage
    }
  }

  // --- texts ---------------------------------------------------------------------------------------------------------

  async loadText(path: number): Promise<void> {
    const id = this.planId;
    if (id === null || this.texts.has(path)) return;
    try {
      const text = await this.source.text(id, path);
      if (id === this.planId) this.texts = new Map(this.texts).set(path, text);
    } catch (error) {
      this.fail(error);
    }
  }

  showFile(path: string): void {
    [this.place, this.file] = [null, path];
  }

  showPlace(span: Span): void {
    this.place = span;
  }

  /** A link that opens the user's editor at a place, where the server told its folder. */
  editorLink(span: Span): string | null {
    const root = this.skeleton?.root;
    if (!root || !this.source.live) return null;
    const path = span.path.startsWith('/') ? span.path : `${root}/${span.path}`;
    const parts = { path: encodeURI(path), line: String(span.line), column: String(span.column + 1) };
    return this.settings.editor.replace(/\{(path|line|column)\}/g, (_, name: keyof typeof parts) => parts[name]);
  }

  /** The last op recorded at a line: what the line's expression came to. */
  opAtLine(path: string, line: number): number | null {
    const { model } = this;
    if (!model) return null;
    for (let value = model.count - 1; value >= 0; value--) {
      const span = model.span(value);
      if (span && span.path === path && span.line <= line && line <= span.end_line) return value;
    }
    return null;
  }

  async loadEmitted(): Promise<void> {
    const { skeleton, options } = this;
    if (!skeleton) return;
    const key = JSON.stringify([skeleton.id, skeleton.revision, options]);
    if (this.emitted?.key === key) return;
    this.emitted = { key, text: null, error: null };
    try {
      const text = await this.source.emitted(skeleton.id, skeleton.revision, { ...options, consumer: 'stablehlo' });
      if (this.emitted?.key === key) this.emitted = { key, text, error: null };
    } catch (error) {
      if (this.emitted?.key === key) this.emitted = { key, text: null, error: error instanceof Error ? error.message : String(error) };
    }
  }
}

function defined(options: Options): Options {
  const kept = Object.entries(options).filter(([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0));
  return kept.length ? (Object.fromEntries(kept) as Options) : EMPTY;
}

function difference(before: Plan, after: Plan): string {
  const old = new Map(before.regions.map((region) => [region.id, region.verdict]));
  const moved = after.regions.filter((region) => old.get(region.id) !== region.verdict);
  const gone = before.regions.filter((region) => !after.regions.some((other) => other.id === region.id)).length;
  const [was, is] = [before.totals.planned?.seconds?.value, after.totals.planned?.seconds?.value];
  const time = was !== undefined && is !== undefined && was !== is ? `, estimated ${is < was ? '−' : '+'}${seconds(Math.abs(is - was))}` : '';
  const count = moved.length + gone;
  return `${count} region${count === 1 ? '' : 's'} changed${time}`;
}
