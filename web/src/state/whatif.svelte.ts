/** The questions asked of a plan: options on top of the command line's, a stack to undo, and the edits that make them true. */

import type { Edit, Options, Remedy } from '../data/document';
import { unified } from '../data/patch';
import { applied, changedIn, difference } from '../data/planning';
import { Refusal } from '../data/source';
import { type Moved, type Numbering, renamed } from './renamed';
import { write, type View } from './url';
import type { Viewer } from './viewer.svelte';

/** A what-if as edits and a command line. */
export interface Written {
  title: string;
  /** Empty where the program need not change. */
  patch: string;
  /** Null where no option is asked. */
  command: string | null;
  nowhere: string[];
  /** Observations that no known edit ends. */
  kept: string[];
}

export const NOTHING: Options = {};
/** Milliseconds in which what a question changed has pulsed. */
const PULSE = 1500;
/** Milliseconds after which a question shows that it runs, and can be cancelled. */
const BUDGET = 600;

export class WhatIf {
  options = $state.raw<Options>(NOTHING);
  past = $state.raw<Options[]>([]);
  /** Whether the running question is over its budget, and for how many seconds it runs. */
  slow = $state(false);
  seconds = $state(0);
  /** The fix that was asked last, where several ask the same. */
  private chosen: Remedy['id'] | null = null;
  private turn = 0;
  /** Takes the running question back. */
  private giveUp: (() => void) | null = null;

  constructor(private readonly viewer: Viewer) {}

  /** Whether a question can be asked: of a server, and in the plan's own numbering. */
  allowed = $derived.by(() => this.viewer.source.live && this.viewer.compared === null);

  /** Whether an observation row is left out now. */
  ignores(row: number): boolean {
    return (this.options.ignore ?? []).includes(row);
  }

  observes(value: number): boolean {
    const rows = this.viewer.index?.observed.get(value) ?? [];
    return rows.some((row) => !this.ignores(row)) || (this.options.observe ?? []).includes(value);
  }

  async toggle(value: number): Promise<void> {
    const base = this.viewer.base!;
    const rows = base.observations.flatMap((o, row) => (o.value === value && o.kind !== 'output' ? [row] : []));
    const { observe = [], ignore = [] } = this.options;
    if (this.observes(value))
      await this.ask({ ...this.options, observe: observe.filter((v) => v !== value), ignore: [...new Set([...ignore, ...rows])] });
    else if (rows.length) await this.ask({ ...this.options, ignore: ignore.filter((row) => !rows.includes(row)) });
    else await this.ask({ ...this.options, observe: [...observe, value] });
  }

  /** Asks what a fix comes to. */
  async apply({ id, asks }: Remedy): Promise<void> {
    const { ignore = [], beside = [], observe = [] } = this.options;
    const asked = this.ask({
      ...this.options, ignore: joined(ignore.filter((row) => !asks.beside.includes(row)), asks.ignore),
      beside: joined(beside.filter((row) => !asks.ignore.includes(row)), asks.beside), observe: joined(observe.filter((value) => !asks.unobserve.includes(value)), asks.observe),
    });
    this.chosen = id;
    await asked;
  }

  /** Asks with other options; the present ones can be gone back to. */
  async ask(options: Options): Promise<void> {
    this.chosen = null;
    await this.plan(defined(options), this.options);
  }

  async undo(): Promise<void> {
    const last = this.past.at(-1);
    if (!last) return;
    this.past = this.past.slice(0, -1);
    await this.plan(last, null);
  }

  async revert(): Promise<void> {
    if (this.options !== NOTHING) await this.plan(NOTHING, this.options);
  }

  /** What a link or a reload brings along, else what a save leaves true of what was asked, answered or not; tells what it does not. */
  bring(asked: Options, was: Numbering | null, moved: Moved): void {
    const { options, viewer } = this;
    this.past = [];
    if (asked !== NOTHING) {
      this.options = asked;
      return;
    }
    const { kept, lost } = renamed(options, was, { graph: viewer.skeleton!.graph, observations: viewer.base!.observations }, moved);
    this.options = defined(kept);
    if (was && lost.length) viewer.notice = viewer.status = `Not asked any more, since it was not found in the saved program: ${lost.join(', ')}`;
  }

  /** Asks what was brought along; the program as it is can be gone back to. */
  async again(): Promise<void> {
    if (this.options !== NOTHING) await this.plan(this.options, NOTHING);
  }

  /** Asks what an address holds that the reader went to on the same page. */
  async follow(asked: Options): Promise<void> {
    if (write(asked) !== write(this.options)) await this.ask(asked);
  }

  /** Fetches the curve of the plan on the page, which came without: nobody looked at it then. */
  async curve(): Promise<void> {
    const { viewer } = this;
    const { base, skeleton, plan } = viewer;
    if (!base || !skeleton || !plan || plan.liveness) return;
    try {
      const { liveness } = await viewer.source.whatif(skeleton.id, skeleton.revision, this.options, true);
      if (viewer.plan === plan) viewer.replan({ ...plan, liveness });
    } catch (error) {
      if (error instanceof Refusal && error.status === 409) await viewer.loading.refresh();
      else viewer.fail(error);
    }
  }

  /** Ends the running question: the plan on the page stays, and the server stops planning. */
  async cancel(): Promise<void> {
    const { skeleton, source } = this.viewer;
    this.giveUp?.();
    if (!skeleton) return;
    try {
      await source.cancelWhatif(skeleton.id);
    } catch (error) {
      this.viewer.fail(error);
    }
  }

  forget(): void {
    [this.options, this.past] = [NOTHING, []];
  }

  private async plan(options: Options, before: Options | null): Promise<void> {
    const { viewer } = this;
    const { base, skeleton, plan } = viewer;
    if (!base || !skeleton || !plan) return;
    const turn = ++this.turn;
    const was = this.options;
    if (before) this.past = [...this.past, before];
    this.options = Object.keys(options).length ? options : NOTHING;
    viewer.texts.emitted = null;
    [viewer.busy, viewer.status] = ['planning', '']; // what the last question changed is no answer to this one
    const late = this.watch(turn);
    this.giveUp = () => {
      if (turn !== this.turn) return;
      this.turn++;
      [this.options, this.slow, viewer.busy, viewer.status] = [was, false, null, 'the question was cancelled'];
      this.past = before ? this.past.slice(0, -1) : [...this.past, options]; // what undoing asked can be asked again
    };
    try {
      const next = this.options === NOTHING ? base : applied(base, await viewer.source.whatif(skeleton.id, skeleton.revision, options, viewer.memory));
      if (turn !== this.turn || viewer.base !== base) return; // another question, or another plan, came meanwhile
      viewer.replan(next);
      const changed = (viewer.changed = changedIn(next, plan));
      setTimeout(() => viewer.changed === changed && (viewer.changed = new Set()), PULSE); // not again when it comes back into view
      viewer.status = difference(plan, next);
    } catch (error) {
      if (turn !== this.turn) return;
      if (error instanceof Refusal && error.status === 409) {
        viewer.status = 'asked again: the program was saved meanwhile';
        await viewer.loading.refresh(); // which asks it of the plan that comes, if one does
        if (turn !== this.turn || viewer.base !== base || viewer.loading.running) return;
      } else viewer.fail(error);
      if (before) [this.options, this.past] = [before, this.past.slice(0, -1)];
    } finally {
      clearInterval(late);
      if (turn === this.turn) [viewer.busy, this.slow, this.giveUp] = [null, false, null];
    }
  }

  /** Tells of a question that takes longer than it should; gives the clock. */
  private watch(turn: number): number {
    const begun = performance.now();
    [this.slow, this.seconds] = [false, 0];
    return window.setInterval(() => {
      if (turn !== this.turn) return;
      [this.slow, this.seconds] = [true, Math.floor((performance.now() - begun) / 1000)];
    }, BUDGET);
  }

  /** What makes the question true: edits of the program, file by file, and the command line for what is asked and not written. */
  async asCode(): Promise<Written | null> {
    const { base, skeleton, texts, source } = this.viewer;
    if (!base || !skeleton) return null;
    const ignored = new Set(this.options.ignore ?? []);
    const beside = new Set(this.options.beside ?? []);
    const remedies = base.regions.flatMap(({ fixes = [] }) => fixes.filter(({ id, asks, edits }) => edits.length > 0
      && (id === 'beside' ? asks.beside.every((row) => beside.has(row)) : id === this.chosen && asks.ignore.every((row) => ignored.has(row)))));
    const mended = new Set(remedies.flatMap(({ asks }) => [...asks.ignore, ...asks.beside]));
    const blockers = base.regions.filter((r) => r.observations.length && r.observations.every((row) => ignored.has(row) && !mended.has(row)));
    const moves = (this.options.observe ?? []).length > 0; // observe elsewhere instead, or stop
    const fixes = base.findings.flatMap((finding) => {
      if (!blockers.some((region) => region.id === finding.region)) return [];
      const known = (finding.fixes ?? (finding.fix ? [finding.fix] : [])).filter((fix) => fix.edits.length);
      return known.find((fix) => fix.edits.some((edit) => edit.text.trim() !== '') === moves) ?? known.slice(0, 1);
    });
    // a moved observation is written, and asked for no more
    const options = fixes.length ? { ...this.options, observe: [] } : this.options;
    const { edits, nowhere, command } = await source.asCode(skeleton.id, skeleton.revision, options);
    const off = (this.options.off ?? []).join(', ');
    const titles = [...new Set([...fixes.map((fix) => fix.title), ...remedies.map((remedy) => remedy.text)]), ...(edits.length ? [`switch off ${off}`] : [])];
    const byPath = new Map<string, Edit[]>();
    for (const edit of [...[...fixes, ...remedies].flatMap((fix) => fix.edits), ...edits]) {
      const here = byPath.get(edit.path) ?? [];
      if (!here.some((e) => e.line === edit.line && e.column === edit.column && e.text === edit.text)) byPath.set(edit.path, [...here, edit]);
    }
    const patches: string[] = [];
    for (const [path, mine] of byPath) {
      const index = skeleton.paths.indexOf(path);
      if (index >= 0) patches.push(unified(path, await texts.get(index), mine));
    }
    const ended = new Set(base.findings.flatMap((f) => (fixes.some((fix) => f.fix === fix || f.fixes?.includes(fix)) ? base.regions.find((r) => r.id === f.region)!.observations : [])));
    const kept = [...ignored, ...beside].filter((row) => !ended.has(row) && !mended.has(row)).map((row) => base.observations[row]?.name ?? `%${base.observations[row]?.value}`);
    const asked = ['consumer', 'fidelity', 'machine'].some((name) => this.options[name as keyof Options]) || (options.observe ?? []).length > 0;
    if (!patches.length && !asked && !nowhere.length) return null;
    return { title: titles.join('; '), patch: patches.join(''), command: asked ? command : null, nowhere, kept };
  }
}

/** What an address asks. */
export function optionsOf({ consumer, fidelity, machine, observe, ignore, beside, off }: View): Options {
  return defined({ consumer, fidelity, machine, observe, ignore, beside, off });
}

const joined = (some: readonly number[], more: readonly number[]): number[] => [...new Set([...some, ...more])];

/** Leaves out what is not asked. */
export function defined(options: Options): Options {
  const kept = Object.entries(options).filter(([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0));
  return kept.length ? (Object.fromEntries(kept) as Options) : NOTHING;
}
