/** Small graphs for tests, written as rows: name, operands, scope, frames from the outside in. */

import type { Graph } from '../src/data/document';
import { Model } from '../src/data/model';

export interface Row {
  op: string;
  reads?: number[];
  scope?: string[];
  /** [line, function, kind] from the outside in. */
  calls?: [number, string, string][];
  type?: string;
  attributes?: string;
}

export function graph(rows: Row[], results: number[] = [rows.length - 1]): Graph {
  const table = <T>(): { rows: T[]; add(row: T): number } => {
    const rows: T[] = [];
    const known = new Map<string, number>();
    return {
      rows,
      add(row: T): number {
        const key = JSON.stringify(row);
        if (!known.has(key)) known.set(key, rows.push(row) - 1);
        return known.get(key)!;
      },
    };
  };
  const [names, types, scopes, functions, frames, locations, attributes] = [
    table<string>(), table<string>(), table<string[]>(), table<string>(), table<Graph['frames'][number]>(), table<Graph['locations'][number]>(), table<string>(),
  ];
  scopes.add([]);
  const spans: number[] = [];
  const ops: Graph['ops'] = { name: [], arity: [], operands: [], type: [], location: [], attributes: [] };
  for (const row of rows) {
    const calls = row.calls ?? [[1, 'main', 'user']];
    const chain = calls.map(([line, fn, kind]) => frames.add([0, line, 0, line, 1, functions.add(fn), kind])).reverse();
    const location = locations.add([scopes.add(row.scope ?? []), chain]);
    spans[location] = chain[0];
    ops.name.push(names.add(row.op));
    ops.arity.push(row.reads?.length ?? 0);
    ops.operands.push(...(row.reads ?? []));
    ops.type.push(types.add(row.type ?? 'f32[2,3]'));
    ops.location.push(location);
    ops.attributes.push(attributes.add(row.attributes ?? ''));
  }
  return {
    paths: ['m.py'], functions: functions.rows, scopes: scopes.rows, frames: frames.rows, locations: locations.rows, spans,
    names: names.rows, types: types.rows, ops, attributes: attributes.rows, results,
    inputs: rows.flatMap((row, value) => (row.op === 'input' ? [{ value, name: `x${value}` }] : [])), parameters: [],
  };
}

export const model = (rows: Row[], results?: number[]): Model => new Model(graph(rows, results));

/** Deterministic numbers, so that a failure comes back. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A graph of `count` ops that read one to three of the last twenty. */
export function tangled(count: number, seed: number, scoped: boolean): Row[] {
  const next = random(seed);
  const rows: Row[] = [{ op: 'input' }, { op: 'input' }];
  for (let i = 2; i < count; i++) {
    const reads = Array.from({ length: 1 + Math.floor(next() * 3) }, () => Math.max(0, i - 1 - Math.floor(next() ** 2 * 20)));
    const scope = scoped ? ['net', `block${Math.floor(i / 24)}`, ...(i % 24 > 12 ? ['inner'] : [])] : [];
    rows.push(next() < 0.15 ? { op: 'constant', scope, attributes: `value=${i}` } : { op: ['add', 'mul', 'matmul', 'exp'][i % 4], reads, scope });
  }
  return rows;
}
