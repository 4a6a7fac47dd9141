/** What the server traces: the page's first sight before there is a plan, and a word in the top bar behind every save. */

import type { PlanState, Running } from '../data/document';
import type { Source } from '../data/source';

export class Tracing {
  running = $state.raw<Running | null>(null);
  targets = $state.raw<string[]>([]);
  /** The files whose save began the last trace; none where the reader did. */
  saved = $state.raw<string[]>([]);
  /** Seconds since the running trace began; ticks while somebody looks. */
  seconds = $state(0);
  private begun = 0;
  private clock = 0;
  private told = 0;

  constructor(
    private readonly source: Source,
    private readonly fail: (error: unknown) => void,
  ) {}

  /** Asks what is being traced; the events tell the rest. */
  async ask(): Promise<void> {
    if (this.source.live) await this.take(() => this.source.tracing());
  }

  /** The targets of the command line without a state so far; all are told of once the trace is over. */
  missing(plans: readonly PlanState[]): string[] {
    return this.running ? this.targets.filter((target) => !plans.some((plan) => isOf(plan, target))) : [];
  }

  cancel = (): Promise<void> => this.take(() => this.source.cancelTrace());
  again = (): Promise<void> => {
    this.saved = [];
    return this.take(() => this.source.traceAgain());
  };

  heard(running: Running | null): void {
    this.told++;
    this.running = running;
    clearInterval(this.clock);
    if (!running) return;
    this.begun = performance.now() - running.seconds * 1000;
    this.tick();
    this.clock = window.setInterval(() => this.tick(), 500);
  }

  private tick(): void {
    this.seconds = Math.floor((performance.now() - this.begun) / 1000);
  }

  private async take(question: () => Promise<{ targets: string[]; running: Running | null }>): Promise<void> {
    const before = this.told;
    try {
      const { targets, running } = await question();
      this.targets = targets;
      if (this.told === before) this.heard(running); // else an event overtook the answer
    } catch (error) {
      this.fail(error);
    }
  }
}

/** Whether a plan is a target of the command line, or an entry of the file that this names. */
export const isOf = (plan: PlanState, target: string): boolean => plan.target === target || plan.target.startsWith(`${target}:`);
