/** The page's colours for what draws without a style sheet. */

import type { Verdict } from '../data/document';

export interface Palette {
  canvas: string;
  frame: string;
  node: string;
  nodeLine: string;
  line: string;
  edge: string;
  text: string;
  select: string;
  accent: string;
  verdict: Record<Verdict, string>;
}

function palette(element: HTMLElement): Palette {
  const probe = document.createElement('span');
  element.append(probe);
  const colour = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const result = {
    canvas: colour('canvas'), frame: colour('frame'), node: colour('node'), nodeLine: colour('node-line'), line: colour('line'),
    edge: colour('edge'), text: colour('text'), select: colour('select'), accent: colour('accent'),
    verdict: { taken: colour('taken'), declined: colour('declined'), blocked: colour('blocked'), near_miss: colour('near-miss') },
  };
  probe.remove();
  return result;
}

/** Gives the colours now and whenever the theme changes; gives what ends that. */
export function watchPalette(element: HTMLElement, changed: (colours: Palette) => void): () => void {
  const update = (): void => changed(palette(element));
  update();
  const media = matchMedia('(prefers-color-scheme: dark)');
  media.addEventListener('change', update);
  const observer = new MutationObserver(update);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
  return () => {
    media.removeEventListener('change', update);
    observer.disconnect();
  };
}
