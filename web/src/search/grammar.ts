/**
 * The search box: `op:matmul scope:layer3* shape:*x512 dtype:f32 bytes>1e6 us>50 state:blocked rule:conv* line:12 conv`.
 * Globs and comparisons, no regular expressions: a pattern can never take long.
 */

import type { Region, Verdict } from '../data/document';
import { loss } from '../data/figures';
import type { Model } from '../data/model';

export interface Term {
  field: string;
  test: '' | ':' | '>' | '<' | '=';
  text: string;
  negated: boolean;
}

export const FIELDS = ['op', 'scope', 'shape', 'dtype', 'bytes', 'us', 'state', 'rule', 'value', 'line', 'file', 'code'] as const;
const WORDS: Record<string, Verdict> = { taken: 'taken', declined: 'declined', blocked: 'blocked', near: 'near_miss', near_miss: 'near_miss' };
const NUMBERS: readonly string[] = ['bytes', 'us', 'line'];
const isNumber = (text: string): boolean => text.trim() !== '' && !Number.isNaN(Number(text));
const LONGEST = 400;

/** Reads a query; `faults` says what of it cannot be read: fields that are none, and numbers that are none. */
export function parse(query: string): { terms: Term[]; faults: string[] } {
  const terms: Term[] = [];
  const faults: string[] = [];
  for (const word of query.slice(0, LONGEST).split(/\s+/).filter(Boolean)) {
    const negated = word.startsWith('-') && word.length > 1;
    const bare = negated ? word.slice(1) : word;
    const found = bare.match(/^([a-z_]+)([:<>=])(.*)$/);
    if (!found) terms.push({ field: '', test: '', text: bare.toLowerCase(), negated });
    else if (!(FIELDS as readonly string[]).includes(found[1])) faults.push(`no field ${found[1]}`);
    else if (NUMBERS.includes(found[1]) && found[3] !== '' && !isNumber(found[3])) faults.push(`${found[1]}: ${found[3]} is no number`);
    else if (found[3] !== '') terms.push({ field: found[1], test: found[2] as Term['test'], text: found[3].toLowerCase(), negated });
  }
  return { terms, faults };
}

/** Whether a glob of `*` and `?` matches all of a text; takes time in the product of their lengths at most. */
export function glob(pattern: string, text: string): boolean {
  let [p, t, star, mark] = [0, 0, -1, 0];
  while (t < text.length) {
    if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[t]) && pattern[p] !== '*') {
      p++;
      t++;
    } else if (pattern[p] === '*') {
      star = p++;
      mark = t;
    } else if (star >= 0) {
      p = star + 1;
      t = ++mark;
    } else return false;
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}

const matches = (pattern: string, text: string): boolean =>
  pattern.includes('*') || pattern.includes('?') ? glob(pattern, text) : text.includes(pattern);

function compares(term: Term, value: number): boolean {
  const limit = Number(term.text);
  if (Number.isNaN(limit)) return false;
  return term.test === '>' ? value > limit : term.test === '<' ? value < limit : value === limit;
}

const shapeOf = (type: string): string => type.slice(type.indexOf('[') + 1, -1).replaceAll(',', 'x');
const dtypeOf = (type: string): string => type.slice(0, type.indexOf('['));

/** Values that all terms hold for; terms on regions hold for a region's members. */
export function searchOps(model: Model, terms: Term[], regionsOf: (value: number) => Region[]): number[] {
  if (!terms.length) return [];
  const found: number[] = [];
  for (let value = 0; value < model.count; value++) if (terms.every((term) => opHolds(model, term, value, regionsOf) !== term.negated)) found.push(value);
  return found;
}

function opHolds(model: Model, term: Term, value: number, regionsOf: (value: number) => Region[]): boolean {
  const { text } = term;
  switch (term.field) {
    case '':
      return (
        model.name(value).toLowerCase().includes(text) || model.title(value).toLowerCase().includes(text) ||
        model.scope(value).join('.').toLowerCase().includes(text) || (model.span(value)?.path ?? '').toLowerCase().includes(text) ||
        regionsOf(value).some((region) => region.root === value && region.pattern.includes(text))
      );
    case 'op': return matches(text, model.name(value).toLowerCase());
    case 'scope': return matches(text.replaceAll('/', '.'), model.scope(value).join('.').toLowerCase());
    case 'shape': return term.test === ':' && glob(text, shapeOf(model.type(value)));
    case 'dtype': return matches(text, dtypeOf(model.type(value)));
    case 'bytes': return compares(term, model.bytes(value));
    case 'value': return matches(text, model.title(value).toLowerCase()) || text === `%${model.number(value)}` || text === String(model.number(value));
    case 'line': return compares(term, model.span(value)?.line ?? -1);
    case 'file': return matches(text, (model.span(value)?.path ?? '').toLowerCase());
    default: return regionsOf(value).some((region) => regionHolds(term, region));
  }
}

/** Whether a region's own terms hold; terms on ops are asked of its members elsewhere. */
export function regionHolds(term: Term, region: Region): boolean {
  const { text } = term;
  switch (term.field) {
    case '': return [region.pattern, region.headline, region.scope.join('.'), region.path].some((s) => s.toLowerCase().includes(text));
    case 'state': return region.verdict === (WORDS[text] ?? text);
    case 'rule': return matches(text, region.pattern);
    case 'code': return matches(text, (region.code ?? '').toLowerCase());
    case 'us': return compares(term, loss(region) * 1e6);
    case 'scope': return matches(text.replaceAll('/', '.'), region.scope.join('.').toLowerCase());
    case 'line': return compares(term, region.line);
    case 'file': return matches(text, region.path.toLowerCase());
    default: return false;
  }
}
