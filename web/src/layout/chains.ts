/** Chains that only prepare an operand: `input`, `slice`, `reshape` of a scale move as one towards what reads the last of them. */

import type { Job } from './job';

/** Partitions the items: those of a chain from its first to its last, every other one alone. */
export function chains(job: Job): number[][] {
  const feeders = job.width.map((): number[] => []);
  const readers = job.width.map((): number[] => []);
  for (const [from, to] of job.edges) {
    feeders[to].push(from);
    readers[from].push(to);
  }
  const port = new Set([...job.incoming, ...job.outgoing]);
  const light = new Set([...port, ...job.light]);
  const bends = (item: number): boolean => port.has(item) || job.open[item] >= 0;
  /** The item that alone reads this one, and nothing else. */
  const next = (item: number): number | null => {
    const [reader] = readers[item];
    return readers[item].length === 1 && feeders[reader].length === 1 && !bends(reader) ? reader : null;
  };
  const taken = new Set<number>();
  const found: number[][] = [];
  job.width.forEach((_, item) => {
    const [feeder] = feeders[item];
    const starts = feeders[item].length === 0 || (feeders[item].length === 1 && light.has(feeder) && (port.has(feeder) || next(feeder) !== item));
    if (bends(item) || !starts) return;
    const chain = [item];
    for (let at = next(item); at !== null; at = next(at)) chain.push(at);
    if (chain.length < 2) return;
    found.push(chain);
    for (const member of chain) taken.add(member);
  });
  return [...job.width.flatMap((_, item) => (taken.has(item) ? [] : [[item]])), ...found];
}
