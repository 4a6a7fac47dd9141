/** Gives regions back from their templates; what `topos_web/packing.py` packed. */

import type { Packed, Region } from './document';

export function unpack({ templates, scope: scopes, modules, rows }: Packed): Region[] {
  return rows.map(([row, root, occurrence, id, key, place, built]) => {
    const t = templates[row];
    const scope = scopes[place];
    const one = (value: number): number => value + root;
    const many = (values: number[]): number[] => values.map(one);
    return {
      ...t, scope, ...(built === null ? {} : { modules: modules[built] }), root, occurrence,
      id: id ?? `${t.pattern}@${root}`,
      key: key ?? `${t.pattern}/${t.fingerprint}/${scope.join('.')}/${occurrence}`,
      nodes: many(t.nodes), computing: many(t.computing), readers: t.readers && many(t.readers),
      bindings: Object.fromEntries(Object.entries(t.bindings).map(([name, value]) => [name, one(value)])),
      named: Object.fromEntries(Object.entries(t.named).map(([name, values]) => [name, many(values)])),
      paths: t.paths.map(many), nearest_free: t.nearest_free === null ? null : one(t.nearest_free),
      near_miss: t.near_miss && { ...t.near_miss, at: one(t.near_miss.at) },
      winner: t.winner && placed(t.winner, root), parent: t.parent && placed(t.parent, root),
      contains: t.contains.map((name) => placed(name, root)),
    };
  });
}

/** `pattern@+3` stands three values behind the root; `=name` is a name as it is. */
function placed(name: string, root: number): string {
  if (name.startsWith('=')) return name.slice(1);
  const at = name.lastIndexOf('@');
  return `${name.slice(0, at)}@${Number(name.slice(at + 1)) + root}`;
}
