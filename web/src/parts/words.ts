import type { Verdict } from '../data/document';

export const WORD: Record<Verdict, string> = { taken: 'Taken', declined: 'Declined', blocked: 'Blocked', near_miss: 'Near miss' };

/** A reason that stands below its verdict, which it need not say again. */
export function reasonOf({ verdict, reason }: { verdict: Verdict; reason: string }): string {
  const told = `${verdict.replace('_', ' ')}: `;
  return reason.startsWith(told) ? reason.slice(told.length) : reason;
}

/** The decline's own word where it has one: `Declined by cost` says more than `Declined`. */
export function verdictWord(region: { verdict: Verdict; word: string | null }): string {
  if (region.verdict === 'declined' && region.word === 'covered-by') return 'Declined: covered by another';
  if (region.verdict === 'declined' && region.word) return `Declined: ${region.word.replaceAll('-', ' ')}`;
  if (region.verdict === 'blocked') return 'Blocked by observation';
  return WORD[region.verdict];
}

/** Why the server is asked nothing more of the last good plan while what was saved last does not record. */
export const KEPT = 'Not asked: what was saved last does not record.';

/** Why the server is asked nothing more of the plan that is compared with. */
export const OTHER = 'Not asked: A is what is compared with; choose B or Both.';

/** Targets as people tell them apart: without the folder that all of them lie in. */
export function apart(targets: string[]): string[] {
  if (targets.length < 2) return targets;
  const folders = targets.map((target) => target.slice(0, target.lastIndexOf('/', target.lastIndexOf(':')) + 1).split('/'));
  let same = 0;
  while (folders.every((parts) => same < parts.length - 1 && parts[same] === folders[0][same])) same += 1;
  const length = folders[0].slice(0, same).reduce((sum, part) => sum + part.length + 1, 0);
  return targets.map((target) => target.slice(length));
}
