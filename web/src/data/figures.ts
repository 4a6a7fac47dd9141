/** Writes the document's numbers for people, and orders regions by what they lose; computes no cost of its own. */

import type { Figure, Region } from './document';

const TIMES: [number, string][] = [[1, 's'], [1e-3, 'ms'], [1e-6, 'us'], [1e-9, 'ns']];
const SIZES: [number, string][] = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']];
const COUNTS: [number, string][] = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
const PLURALS: Record<string, string> = { flop: 'flops', call: 'calls', op: 'ops', value: 'values' };

/** Writes a figure as the document's own sentences do: three digits, times in us, sizes in powers of 1024; a loss with a minus. */
export function written({ value, unit }: Pick<Figure, 'value' | 'unit'>): string {
  return minus(value) + magnitude(Math.abs(value), unit);
}

/** Writes a change with its sign. */
export function signed({ value, unit }: Pick<Figure, 'value' | 'unit'>): string {
  return (value > 0 ? '+' : minus(value) || '±') + magnitude(Math.abs(value), unit);
}

/** The sign of a number on the page: no hyphen, which is narrower than a plus and which a line may end behind. */
const minus = (value: number): string => (value < 0 ? '−' : '');

function magnitude(value: number, unit: string): string {
  if (unit === 'second') return value === 0 ? '0 s' : scaled(value, TIMES);
  if (unit === 'byte') return value < 1024 ? `${Math.round(value)} B` : scaled(value, SIZES);
  if (unit === 'share') return String(Number(value.toPrecision(2)));
  const many = value === 1 ? unit : (PLURALS[unit] ?? unit);
  return value < 10_000 ? `${Number(value.toPrecision(6))} ${many}`.trim() : scaled(value, COUNTS) + many;
}

/** A count of ops in words. */
export const ops = (count: number): string => `${count} op${count === 1 ? '' : 's'}`;

export const seconds = (value: number): string => written({ value, unit: 'second' });
/** A figure that no line breaks inside. */
export const unbroken = (text: string): string => text.replace(' ', '\u00a0');
export const bytes = (value: number): string => written({ value, unit: 'byte' });

function scaled(value: number, scales: [number, string][]): string {
  const [scale, unit] = scales.find(([s]) => value >= s) ?? scales[scales.length - 1];
  return `${Number((value / scale).toPrecision(3))} ${unit}`;
}

export function words(name: string): string {
  return name.replaceAll('_', ' ');
}

/** A headline without the verdict behind it, which stands beside it. */
export function titleOf(region: Region): string {
  const at = region.headline.lastIndexOf(': ');
  // an arrow is one sign: no line ends inside it
  return (at > 0 ? region.headline.slice(0, at) : region.headline).replaceAll('->', '-\u2060>');
}

/** One row of the cost table: what it is now, and what it would be or is when taken. */
export interface CostRow {
  name: string;
  before: Figure | null;
  after: Figure | null;
}

export function costTable(region: Region): { rows: CostRow[]; rest: [string, Figure][] } {
  const rows = new Map<string, CostRow>();
  const rest: [string, Figure][] = [];
  for (const [name, figure] of Object.entries(region.cost)) {
    const side = name.match(/^(.*)_(before|after)$/);
    if (!side) {
      rest.push([name, figure]);
      continue;
    }
    const row = rows.get(side[1]) ?? { name: side[1], before: null, after: null };
    row[side[2] as 'before' | 'after'] = figure;
    rows.set(side[1], row);
  }
  const rank = (name: string): number => (name.startsWith('seconds') || name === 'time' ? 0 : name.startsWith('bytes') ? 1 : 2);
  return { rows: [...rows.values()].sort((a, b) => rank(a.name) - rank(b.name)), rest };
}

/** What a blocked or declined region costs, as the plan estimated it: its price, else its benefit; 0 where it says none. */
export function loss(region: Region): number {
  if (region.verdict === 'taken' || region.verdict === 'near_miss' || region.winner !== null) return 0; // a winner saves more
  return Math.max(0, (region.cost.price ?? region.cost.benefit)?.value ?? 0);
}

const ORDER = { blocked: 0, declined: 1, near_miss: 2, taken: 3 };

/** Largest loss first; then by verdict, then by what taking it saves, then by trace order. */
export function byLoss(regions: readonly Region[]): Region[] {
  const gain = (region: Region): number => region.cost.benefit?.value ?? 0;
  return [...regions].sort(
    (a, b) => ORDER[a.verdict] - ORDER[b.verdict] || loss(b) - loss(a) || gain(b) - gain(a) || a.root - b.root,
  );
}
