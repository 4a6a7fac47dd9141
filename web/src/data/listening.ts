/** Hears what the server tells: a stream of events, or, behind a proxy that holds streams back, the last ones every two seconds. */

import type { Running } from './document';

export type PlanEvent =
  | { kind: 'tracing'; running: Running | null }
  | { kind: 'saved'; files: string[] }
  | { kind: 'plan'; id: string; revision: number; graph: string | null; failed: boolean; changed_files: string[] }
  | { kind: 'traced' }
  | { kind: 'broken'; message: string }
  | { kind: 'lost' }
  | { kind: 'open' };

export interface Polled {
  last: number;
  events: { event: string; data: object }[];
  missed: boolean;
}

const TOLD = ['plan', 'traced', 'tracing', 'saved', 'broken'];
/** Milliseconds after which a stream that says nothing is held back by somebody: its first event is sent at once. */
const PATIENCE = 4000;
const INTERVAL = 2000;

/** Calls back on every event; gives a function that ends it. */
export function listen(url: string, poll: (after: number | null) => Promise<Polled>, changed: (event: PlanEvent) => void): () => void {
  const told = (event: string, data: object): void => changed({ kind: event, ...data } as PlanEvent);
  const stream = new EventSource(url);
  let timer = 0;
  let polling = false;
  let ended = false;

  const wait = (): void => {
    clearTimeout(timer);
    timer = window.setTimeout(() => void turnTo(), PATIENCE);
  };
  async function turnTo(): Promise<void> {
    stream.close();
    clearTimeout(timer);
    if (polling) return;
    polling = true;
    let [after, there]: [number | null, boolean] = [null, false];
    while (!ended) {
      try {
        const { last, events, missed } = await poll(after);
        if (!there) changed({ kind: 'open' });
        for (const { event, data } of events) told(event, data);
        if (missed) changed({ kind: 'traced' });
        [after, there] = [last, true];
      } catch {
        changed({ kind: 'lost' }); // told once more each time: nothing else is known
        there = false;
      }
      await new Promise((resolve) => setTimeout(resolve, INTERVAL));
    }
  }

  for (const event of TOLD) stream.addEventListener(event, (e) => told(event, JSON.parse(e.data)));
  stream.addEventListener('hello', () => {
    clearTimeout(timer);
    changed({ kind: 'open' });
  });
  stream.onerror = () => {
    changed({ kind: 'lost' });
    if (stream.readyState === EventSource.CLOSED) void turnTo(); // refused: it will not try again
    else wait();
  };
  wait();
  return () => {
    ended = true;
    clearTimeout(timer);
    stream.close();
  };
}
