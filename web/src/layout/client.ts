/** Asks the layout worker; the newest question wins. */

import type { Model } from '../data/model';
import type { Tree } from '../data/scopes';
import type { LayoutAnswer, LayoutRequest } from './job';
import { assemble, plan, type Opened, type Scene } from './scene';

export class LayoutClient {
  private readonly worker: Worker;
  private next = 0;
  private readonly waiting = new Map<number, (answer: LayoutAnswer) => void>();

  constructor(url: string) {
    this.worker = new Worker(url);
    this.worker.onmessage = ({ data }: MessageEvent<LayoutAnswer>) => {
      this.waiting.get(data.id)?.(data);
      this.waiting.delete(data.id);
    };
  }

  /** Lays the open part out; null where a later call has overtaken this one. */
  async scene(model: Model, tree: Tree, opened: Opened): Promise<Scene | null> {
    const id = ++this.next;
    const planned = plan(model, tree, opened);
    const jobs = planned.jobs.map(({ scope, width, height, open, incoming, outgoing, light, edges }) => ({
      scope, width, height, open, incoming, outgoing, light, edges,
    }));
    const request: LayoutRequest = { id, jobs };
    const answer = await new Promise<LayoutAnswer>((resolve) => {
      this.waiting.set(id, resolve);
      this.worker.postMessage(request);
    });
    if (id !== this.next) return null;
    planned.jobs.forEach((job, i) => {
      job.open.forEach((inner, item) => {
        if (inner < 0) return;
        job.width[item] = answer.placed[inner].width;
        job.height[item] = answer.placed[inner].height;
      });
      if (answer.placed[i].scope !== job.scope) throw new Error(`layout answered scope ${answer.placed[i].scope} for ${job.scope}`);
    });
    return assemble(model, planned, answer.placed);
  }
}
