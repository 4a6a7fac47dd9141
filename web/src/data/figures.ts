/** Writes the document's numbers for people, and orders regions by what they lose; computes no cost of its own. */

import type { Figure, Region } from './document';

const TIME: [number, string][] = [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns']];
const COUNT: [number, string][] = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']];

export function written(figure: Figure): string {
  const { value, unit } = figure;
  if (unit === 's' || unit === 'second' || unit === 'seconds') return seconds(value);
  if (unit === 'byte' || unit === 'bytes') return bytes(value);
  return `${scaled(value)} ${unit}${unit && Math.abs(value) !== 1 && /^(flop|call|kernel|op)$/.test(unit) ? 's' : ''}`.trim();
}

export function seconds(value: number): string {
  const size = Math.abs(value);
  const [scale, unit] = TIME.find(([s]) => size >= s) ?? TIME[TIME.length - 1];
  return value === 0 ? '0 µs' : `${digits(value / scale)} ${unit}`;
}

export function bytes(value: number): string {
  return value < 1e3 ? `${value} B` : `${scaled(value)}B`;
}

function scaled(value: number): string {
  const size = Math.abs(value);
  const [scale, prefix] = COUNT.find(([s]) => size >= s) ?? [1, ''];
  return prefix ? `${digits(value / scale)} ${prefix}` : digits(value);
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e4) return String(value);
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : size >= 1 ? value.toFixed(2) : value.toPrecision(2);
}

export function words(name: string): string {
  return name.replaceAll('_', ' ');
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
  if (region.verdict === 'taken' || region.verdict === 'near_miss') return 0;
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
