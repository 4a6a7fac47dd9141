/** The recorded ops in typed arrays, with readers and places; built once a graph. */

import type { Graph, Span } from './document';

/** A value that this many ops read is drawn as labelled stubs instead of long edges. */
export const HUB_READERS = 9;
/** An input that is read by so many slices and nothing else is one too. */
const PACKED_READERS = 4;

/** How one of two merged programs has the values of the drawing. */
export interface Seen {
  /** By value of the drawing, -1 where this program has no such op. */
  numbers: readonly number[];
  locations: readonly number[];
  /** Where the merged graph has another type. */
  types: ReadonlyMap<number, string>;
}

export class Model {
  readonly count: number;
  readonly operandStart: Int32Array;
  readonly operands: Int32Array;
  readonly userStart: Int32Array;
  readonly users: Int32Array;
  readonly labels = new Map<number, string>();
  /** 1 where the value is a constant, an iota or a parameter with readers: drawn inside its readers, not as a box. */
  readonly chip: Uint8Array;
  /** 1 where the value has so many readers that its edges are drawn as stubs. */
  readonly hub: Uint8Array;
  private readonly sizes: number[];

  /** Of two merged programs, the one whose numbers, places and types are told of what both have comes first. */
  constructor(
    readonly graph: Graph,
    private readonly programs: readonly Seen[] = [],
  ) {
    const { ops } = graph;
    this.count = ops.name.length;
    this.operands = Int32Array.from(ops.operands);
    this.operandStart = starts(ops.arity);
    const readers = new Int32Array(this.count);
    for (const value of this.operands) readers[value]++;
    this.userStart = starts(readers);
    this.users = new Int32Array(this.operands.length);
    const next = this.userStart.slice();
    for (let i = 0; i < this.count; i++)
      for (let j = this.operandStart[i]; j < this.operandStart[i + 1]; j++) this.users[next[this.operands[j]]++] = i;
    for (const { value, name } of [...graph.inputs, ...graph.parameters]) this.labels.set(value, name);
    this.chip = new Uint8Array(this.count);
    this.hub = new Uint8Array(this.count);
    const results = new Set(graph.results);
    for (let i = 0; i < this.count; i++) {
      const name = this.name(i);
      this.chip[i] = (name === 'constant' || name === 'parameter' || name === 'iota') && readers[i] > 0 && !results.has(i) ? 1 : 0;
      this.hub[i] = !this.chip[i] && (readers[i] >= HUB_READERS || (name === 'input' && readers[i] >= PACKED_READERS && this.sliced(i))) ? 1 : 0;
    }
    this.sizes = graph.types.map(bytesOf);
  }

  /** The same drawing, in the words of another one of its programs. */
  seenBy(programs: readonly Seen[]): Model {
    return Object.assign(Object.create(Model.prototype) as Model, this, { programs });
  }

  private program(value: number): Seen | undefined {
    return this.programs.find(({ numbers }) => numbers[value] >= 0);
  }

  /** Whether its readers only take parts of it: it packs several parameters. */
  private sliced(value: number): boolean {
    return this.usersOf(value).every((user) => this.name(user) === 'slice');
  }

  name(value: number): string {
    return this.graph.names[this.graph.ops.name[value]];
  }

  type(value: number): string {
    return this.program(value)?.types.get(value) ?? this.graph.types[this.graph.ops.type[value]];
  }

  attributes(value: number): string {
    return this.graph.attributes[this.graph.ops.attributes[value]];
  }

  bytes(value: number): number {
    const own = this.program(value)?.types.get(value);
    return own !== undefined ? bytesOf(own) : this.sizes[this.graph.ops.type[value]];
  }

  operandsOf(value: number): Int32Array {
    return this.operands.subarray(this.operandStart[value], this.operandStart[value + 1]);
  }

  usersOf(value: number): Int32Array {
    return this.users.subarray(this.userStart[value], this.userStart[value + 1]);
  }

  scope(value: number): string[] {
    return this.graph.scopes[this.graph.locations[this.location(value)][0]];
  }

  location(value: number): number {
    return this.program(value)?.locations[value] ?? this.graph.ops.location[value];
  }

  /** The frame to show: the innermost user frame. */
  span(value: number): Span | null {
    return this.frame(this.graph.spans[this.location(value)]);
  }

  frame(row: number | undefined): (Span & { function: string; kind: string }) | null {
    const frame = row === undefined ? undefined : this.graph.frames[row];
    if (!frame) return null;
    const [path, line, column, end_line, end_column, fn, kind] = frame;
    return { path: this.graph.paths[path], line, column, end_line, end_column, function: this.graph.functions[fn], kind };
  }

  /** The number that its own program gives a value. */
  number(value: number): number {
    return this.program(value)?.numbers[value] ?? value;
  }

  /** How a person calls a value: its given name, else its number. */
  title(value: number): string {
    return this.labels.get(value) ?? `%${this.number(value)}`;
  }
}

function starts(lengths: ArrayLike<number>): Int32Array {
  const at = new Int32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) at[i + 1] = at[i] + lengths[i];
  return at;
}

const WIDTHS: Record<string, number> = { f64: 8, i64: 8, u64: 8, f32: 4, i32: 4, u32: 4, f16: 2, bf16: 2, i16: 2, u16: 2 };

/** Bytes of a type such as `f32[2,3]`. */
export function bytesOf(type: string): number {
  const at = type.indexOf('[');
  if (at < 0) return 0;
  const shape = type.slice(at + 1, -1);
  const size = shape === '' ? 1 : shape.split(',').reduce((product, extent) => product * Number(extent), 1);
  return size * (WIDTHS[type.slice(0, at)] ?? 1);
}
