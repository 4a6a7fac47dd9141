/** Box sizes from text alone, by estimated glyph widths: the same on every machine, whatever fonts it has. */

import type { Model } from '../data/model';
import type { Scope } from '../data/scopes';

export const OP_HEIGHT = 40;
export const CHIP_HEIGHT = 16;
export const SCOPE_HEIGHT = 90;
export const FOLD_HEIGHT = 112;
export const FRAME_HEADER = 26;
export const FRAME_PADDING = 14;
const MOST_CHIPS = 3;
/** The width of a character of an op's subtitle; names and types in DejaVu Sans come to 5.8 on average at most. */
export const SUBTITLE_GLYPH = 5.9;
/** Those of its name, which is bold, and of its attributes. */
export const NAME_GLYPH = 7.2;
export const ATTRIBUTE_GLYPH = 5.4;
/** Characters of an op's attributes that its box has room for; the rest stands in its tooltip and under Why. */
const MOST_ATTRIBUTES = 20;

/** What an op reads that is drawn inside its box. */
export interface Chip {
  value: number;
  text: string;
  kind: 'constant' | 'parameter' | 'hub';
}

export function chipsOf(model: Model, value: number): Chip[] {
  const chips: Chip[] = [];
  const seen = new Set<number>();
  for (const operand of model.operandsOf(value)) {
    if (seen.has(operand)) continue;
    seen.add(operand);
    if (model.chip[operand]) {
      const constant = model.name(operand) !== 'parameter';
      const text = constant ? constantText(model.attributes(operand)) || model.name(operand) : model.title(operand);
      chips.push({ value: operand, text: clip(text, 18), kind: constant ? 'constant' : 'parameter' });
    } else if (model.hub[operand]) chips.push({ value: operand, text: clip(model.title(operand), 18), kind: 'hub' });
  }
  return chips.slice(0, MOST_CHIPS);
}

/** How wide a chip is drawn. */
export function chipWidth(chip: Chip): number {
  return chip.text.length * 6.1 + 11;
}

function constantText(attributes: string): string {
  const text = attributes.match(/value=(.*)/)?.[1] ?? attributes;
  return /^-?\d+(\.\d+)?(e[-+]?\d+)?$/i.test(text) && text.length > 7 ? String(Number(Number(text).toPrecision(4))) : text;
}

export function opSize(model: Model, value: number): [number, number] {
  const chips = chipsOf(model, value);
  const chipRow = chips.reduce((sum, chip) => sum + chipWidth(chip) + 5, 16); // the last one ends before a sign at the corner
  const attributes = isSource(model, value) ? 0 : Math.min(MOST_ATTRIBUTES, model.attributes(value).length);
  const title = model.name(value).length * NAME_GLYPH + 2 * opPadding(model, value) + 2 + (attributes ? attributes * ATTRIBUTE_GLYPH + 22 : 0);
  const subtitle = subtitleOf(model, value).length * SUBTITLE_GLYPH + 2 * opPadding(model, value) + 2;
  const width = Math.min(260, Math.max(120, title, subtitle, chipRow));
  return [Math.ceil(width / 4) * 4, OP_HEIGHT + (chips.length ? CHIP_HEIGHT + 2 : 0)];
}

/** Whether an op's box stands for what exists before a run; its ends are round. */
export function isSource(model: Model, value: number): boolean {
  return model.name(value) === 'input' || model.name(value) === 'parameter';
}

/** Where an op's text begins in its box, and how far from the other end it stays. */
export function opPadding(model: Model, value: number): number {
  return isSource(model, value) ? 14 : 9;
}

/** How many characters of its subtitle a box of some width has room for. */
export function subtitleRoom(model: Model, value: number, width: number): number {
  return Math.floor((width - 2 * opPadding(model, value)) / SUBTITLE_GLYPH);
}

export function subtitleOf(model: Model, value: number): string {
  return `${model.title(value)}: ${model.type(value)}`;
}

export function scopeSize(scope: Scope): [number, number] {
  const title = scopeTitle(scope);
  if (scope.kind === 'fold') return [Math.max(220, Math.min(340, 40 + scope.children.length * 9)), FOLD_HEIGHT];
  return [Math.max(204, Math.min(300, title.length * 7.4 + 46 + opsWidth(scope))), SCOPE_HEIGHT];
}

/** How wide the number of a scope's ops is written at the right of its title. */
export function opsWidth(scope: Scope): number {
  return (String(scope.end - scope.begin).length + 4) * 6.2;
}

export function scopeTitle(scope: Scope): string {
  return scope.kind === 'fold' ? `${scope.title} × ${scope.children.length}` : scope.title;
}

export function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
