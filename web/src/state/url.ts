/** The page's whole state in the URL's fragment, so that a link or a reload shows the same view. */

import { VERDICTS, type Verdict } from '../data/document';
import { cameraOf } from './camera';

export type Pane = 'emitted' | 'kernel';

export interface View {
  plan?: string;
  /** `r:KEY`, `o:VALUE` or `s:KEY`. */
  selection?: string;
  /** Keys of scopes that are open where they would be closed, and (with a minus) the other way round. */
  open?: string[];
  shown?: Record<string, number>;
  consumer?: string;
  fidelity?: string;
  machine?: string;
  observe?: number[];
  ignore?: number[];
  beside?: number[];
  off?: string[];
  query?: string;
  /** Which of its hits, from 1. */
  hit?: number;
  filter?: Verdict[];
  compare?: string;
  /** The one of two compared plans that is shown, and their texts beside each other. */
  side?: 'a' | 'b';
  texts?: 'sources' | 'emitted';
  pane?: Pane;
  memory?: boolean;
  phases?: boolean;
  candidates?: boolean;
  /** Whether the profile that the server has stays off the drawing. */
  unmeasured?: boolean;
  /** The order of the list of regions, where it is not by loss. */
  order?: 'measured';
  /** Scopes that are unfolded in the tree, as `open` names them. */
  unfolded?: string[];
  /** Which kernel of the region, and whether as LLVM IR. */
  kernel?: number;
  generated?: boolean;
  /** Whether phases show differences. */
  differences?: boolean;
  /** The file that is shown instead of the selection's, and a place in it: line, column, and those of its end. */
  file?: string;
  place?: number[];
  /** Horizontal and vertical shift, and zoom. */
  camera?: [number, number, number];
}

const list = (values: (string | number)[] | undefined): string | undefined => (values?.length ? values.map((v) => encodeURIComponent(v)).join(',') : undefined);

export function write(view: View): string {
  const parts: [string, string | false | undefined][] = [
    ['plan', view.plan],
    ['sel', view.selection && encodeURIComponent(view.selection)],
    ['open', list(view.open)],
    ['shown', list(Object.entries(view.shown ?? {}).map(([key, i]) => `${key}=${i}`))],
    ['consumer', view.consumer],
    ['fidelity', view.fidelity],
    ['machine', view.machine],
    ['observe', list(view.observe)],
    ['ignore', list(view.ignore)],
    ['beside', list(view.beside)],
    ['off', list(view.off)],
    ['q', view.query && encodeURIComponent(view.query)],
    ['hit', view.hit?.toString()],
    ['show', view.filter?.length === 0 ? 'none' : list(view.filter)],
    ['compare', view.compare && encodeURIComponent(view.compare)],
    ['side', view.side],
    ['texts', view.texts],
    ['pane', view.pane],
    ['memory', view.memory && '1'],
    ['phases', view.phases && '1'],
    ['candidates', view.candidates && '1'],
    ['unmeasured', view.unmeasured && '1'],
    ['order', view.order],
    ['tree', list(view.unfolded)],
    ['kernel', view.kernel?.toString()],
    ['ir', view.generated && '1'],
    ['differences', view.differences && '1'],
    ['file', view.file && encodeURIComponent(view.file)],
    ['place', list(view.place)],
    ['at', view.camera?.map((v, i) => (i === 2 ? v.toFixed(3) : v.toFixed(0))).join(',')],
  ];
  return parts.flatMap(([name, value]) => (value ? [`${name}=${value}`] : [])).join('&');
}

export function read(fragment: string): View {
  const parts = new Map<string, string>();
  for (const part of fragment.replace(/^#/, '').split('&')) {
    const at = part.indexOf('=');
    if (at > 0) parts.set(part.slice(0, at), part.slice(at + 1));
  }
  const text = (name: string): string | undefined => {
    const value = parts.get(name);
    return value === undefined ? undefined : decoded(value);
  };
  const texts = (name: string): string[] | undefined => parts.get(name)?.split(',').map(decoded);
  const numbers = (name: string): number[] | undefined => texts(name)?.map(Number).filter((n) => Number.isInteger(n) && n >= 0);
  const one = (name: string): number | undefined => numbers(name)?.find((n) => n > 0);
  const place = numbers('place');
  const shown = texts('shown')?.map((one) => [one.slice(0, one.lastIndexOf('=')), Number(one.slice(one.lastIndexOf('=') + 1))] as const);
  return {
    plan: text('plan'), selection: text('sel'), open: texts('open'),
    shown: shown && Object.fromEntries(shown.filter(([, i]) => Number.isInteger(i) && i >= 0)),
    consumer: text('consumer'), fidelity: text('fidelity'), machine: text('machine'), observe: numbers('observe'), ignore: numbers('ignore'), beside: numbers('beside'),
    off: texts('off'), query: text('q'), hit: one('hit'), filter: shownVerdicts(texts('show')), compare: text('compare'),
    side: SIDES.find((side) => side === parts.get('side')), texts: TEXTS.find((of) => of === parts.get('texts')),
    pane: PANES.find((pane) => pane === parts.get('pane')), memory: parts.has('memory') || undefined, phases: parts.has('phases') || undefined, candidates: parts.has('candidates') || undefined,
    unmeasured: parts.has('unmeasured') || undefined, order: parts.get('order') === 'measured' ? 'measured' : undefined, unfolded: texts('tree'),
    kernel: one('kernel'), generated: parts.has('ir') || undefined, differences: parts.has('differences') || undefined,
    file: text('file'), place: place?.length === 4 ? place : undefined,
    camera: cameraOf(parts.get('at')?.split(',').map(Number)),
  };
}

const PANES: readonly Pane[] = ['emitted', 'kernel'];
const SIDES = ['a', 'b'] as const;
const TEXTS = ['sources', 'emitted'] as const;

function shownVerdicts(names: string[] | undefined): Verdict[] | undefined {
  const known = names && VERDICTS.filter((verdict) => names.includes(verdict));
  return known?.length || names?.includes('none') ? known : undefined; // no name that is known filters nothing
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
