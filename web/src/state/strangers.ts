/** What an address names that is not here: it is left out and told, so that no link seems to show what it does not. */

import type { Plan, PlanState, Skeleton } from '../data/document';
import type { Model } from '../data/model';
import type { Tree } from '../data/scopes';
import { clip } from '../layout/measure';
import { read, write, type View } from './url';

/** An address without what is not here, and the words for that. */
export interface Vetted {
  view: View;
  strange: string[];
}

/** What of an address cannot be read at all: `name=value`, as it stands there. */
export function unread(fragment: string): string[] {
  const kept = new Map(parts(write(read(fragment))));
  const count = (name: string, text: string | undefined): number => (text === undefined ? 0 : LISTS.has(name) ? text.split(',').length : 1);
  return parts(fragment).flatMap(([name, value]) => (count(name, value) > count(name, kept.get(name)) ? [`${name}=${decoded(value)}`] : []));
}

/** Leaves out a plan to compare with that there is not. */
export function vetPlans(view: View, plans: readonly PlanState[], id: string): Vetted {
  const previous = plans.find((plan) => plan.id === id)?.previous ? `${id}@previous` : null;
  const { compare } = view;
  if (compare === undefined || compare === previous || plans.some((plan) => plan.id === compare && plan.id !== id)) return { view, strange: [] };
  return { view: { ...view, compare: undefined, side: undefined, texts: undefined }, strange: [`compare=${compare}`] };
}

/** Leaves out scopes, files, values, rows and choices that a plan has not. */
export function vetView(view: View, { skeleton, tree, model, plan }: { skeleton: Skeleton; tree: Tree; model: Model; plan: Plan }): Vetted {
  const strange: string[] = [];
  const sizes = new Map(tree.scopes.map((scope) => [scope.key, scope.kind === 'fold' ? scope.children.length : 0]));
  function those<T>(name: string, all: T[] | undefined, here: (one: T) => boolean, say: (one: T) => unknown = (one) => one): T[] | undefined {
    const kept = all?.filter(here);
    strange.push(...(all ?? []).filter((one) => !here(one)).map((one) => `${name}=${String(say(one))}`));
    return kept?.length ? kept : undefined;
  }
  const one = <T>(name: string, value: T | undefined, here: (value: T) => boolean): T | undefined => those(name, value === undefined ? undefined : [value], here)?.[0];
  const scope = (name: string): boolean => sizes.has(name.replace(/^[+-]/, ''));
  const row = (value: number): boolean => value < plan.observations.length;
  const shown = those('shown', view.shown && Object.entries(view.shown), ([key, at]) => at < (sizes.get(key) ?? 0), ([key, at]) => `${key}=${at}`);
  return {
    strange,
    view: {
      ...view, open: those('open', view.open, scope), unfolded: those('tree', view.unfolded, scope), shown: shown && Object.fromEntries(shown),
      consumer: one('consumer', view.consumer, (name) => CONSUMERS.includes(name)), fidelity: one('fidelity', view.fidelity, (name) => FIDELITIES.includes(name)),
      machine: one('machine', view.machine, (name) => skeleton.machines?.includes(name) ?? false), observe: those('observe', view.observe, (value) => value < model.count),
      ignore: those('ignore', view.ignore, row), beside: those('beside', view.beside, row), file: one('file', view.file, (path) => skeleton.paths.includes(path)),
    },
  };
}

/** Letters of one of them, and how many of them, that are told. */
const LONGEST = 120;
const MOST = 12;

/** The words for all that was left out, each once; what would take the page's room is shortened. */
export function leftOut(strange: readonly string[]): string {
  const each = [...new Set(strange)];
  const told = each.slice(0, MOST).map((one) => clip(one, LONGEST));
  const more = each.length > MOST ? [`${each.length - MOST} more`] : [];
  return `Not here, and left out of the address: ${[...told, ...more].join('; ')}`;
}

const LISTS: ReadonlySet<string> = new Set(['open', 'shown', 'observe', 'ignore', 'beside', 'off', 'show', 'tree', 'place']);
const CONSUMERS = ['home', 'stablehlo'];
const FIDELITIES = ['fast', 'exact'];

function parts(fragment: string): [string, string][] {
  return fragment.replace(/^#/, '').split('&').filter(Boolean).map((part): [string, string] => {
    const at = part.indexOf('=');
    return at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)];
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
