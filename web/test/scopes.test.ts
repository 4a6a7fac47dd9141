import { describe, expect, it } from 'vitest';

import { buildTree, childTowards, LARGEST_LEVEL, type Scope, stem, type Tree } from '../src/data/scopes';
import { model, type Row, tangled } from './graphs';

function outline(tree: Tree, scope: Scope = tree.scopes[0]): unknown {
  return [scope.name, ...scope.children.map((child) => (child >= 0 ? child : outline(tree, tree.scopes[~child])))];
}

const layers = (count: number, names: (i: number) => string[]): Row[] => {
  const rows: Row[] = [{ op: 'input' }];
  for (let i = 0; i < count; i++) {
    const before = rows.length - 1;
    rows.push({ op: 'exp', reads: [before], scope: names(i) }, { op: 'neg', reads: [before + 1], scope: names(i) });
  }
  return rows;
};

describe('the tree', () => {
  it('follows module scopes', () => {
    const tree = buildTree(model(layers(2, (i) => ['net', `block${i}`])));
    expect(outline(tree)).toEqual(['', 0, ['net', ['block0', 1, 2], ['block1', 3, 4]]]);
  });

  it('folds three and more identical blocks, and not two', () => {
    expect(outline(buildTree(model(layers(3, (i) => ['net', `block${i}`]))))).toEqual([
      '', 0, ['net', ['block', ['block0', 1, 2], ['block1', 3, 4], ['block2', 5, 6]]],
    ]);
  });

  it('folds no block that differs', () => {
    const rows = layers(3, (i) => [`block${i}`]);
    rows[4] = { ...rows[4], op: 'abs' };
    expect(outline(buildTree(model(rows)))).toEqual(['', 0, ['block0', 1, 2], ['block1', 3, 4], ['block2', 5, 6]]);
  });

  it('tells the rounds of a loop apart where scopes are function names', () => {
    const rows: Row[] = [{ op: 'input' }];
    for (let i = 0; i < 4; i++)
      for (const line of [8, 9])
        rows.push({ op: 'exp', reads: [rows.length - 1], scope: ['layer'], calls: [[20, 'main', 'user'], [line, 'layer', 'user']] });
    const tree = buildTree(model(rows));
    expect(outline(tree)).toEqual(['', 0, ['layer', ['layer 0', 1, 2], ['layer 1', 3, 4], ['layer 2', 5, 6], ['layer 3', 7, 8]]]);
  });

  it('boxes library formulas, dissolves what holds one op, keeps framework calls out', () => {
    const library = (line: number): Row['calls'] => [[5, 'main', 'user'], [40, 'conv2d', 'library'], [line, 'inner', 'library']];
    const tree = buildTree(model([
      { op: 'input' }, { op: 'pad', reads: [0], calls: library(1) }, { op: 'matmul', reads: [1], calls: library(2) },
      { op: 'maximum', reads: [2], calls: [[6, 'main', 'user'], [9, 'relu', 'library']] },
      { op: 'exp', reads: [3], calls: [[7, 'main', 'user'], [1, 'run', 'framework']] },
    ]));
    expect(outline(tree)).toEqual(['', 0, ['conv2d', 1, 2], 3, 4]);
  });

  it('puts a constant with its first reader', () => {
    const tree = buildTree(model([
      { op: 'input' }, { op: 'constant' }, { op: 'add', reads: [0, 1], scope: ['a'] }, { op: 'exp', reads: [2], scope: ['a'] },
    ]));
    expect(outline(tree)).toEqual(['', 0, ['a', 2, 3]]);
    expect(tree.owner[1]).toBe(2);
    expect(tree.scopes[tree.scopeOf[1]].name).toBe('a');
  });

  it('cuts long levels into sections, and those again', () => {
    const rows: Row[] = [{ op: 'input' }];
    while (rows.length < LARGEST_LEVEL ** 2 + 10) rows.push({ op: 'exp', reads: [rows.length - 1] });
    const tree = buildTree(model(rows));
    for (const scope of tree.scopes) expect(scope.children.length).toBeLessThanOrEqual(LARGEST_LEVEL);
    expect(tree.scopes[0].end).toBe(rows.length);
  });

  it.each([1, 2, 3])('holds every op once, in trace order (%i)', (seed) => {
    const m = model(tangled(400, seed, seed > 1));
    const tree = buildTree(m);
    expect([...tree.order].sort((a, b) => a - b)).toEqual([...Array(400).keys()]);
    const shown: number[] = [];
    const visit = (scope: Scope): void => scope.children.forEach((child) => (child >= 0 ? shown.push(child) : visit(tree.scopes[~child])));
    visit(tree.scopes[0]);
    expect(shown).toEqual(shown.slice().sort((a, b) => a - b));
    for (const value of shown) expect(childTowards(tree, tree.scopeOf[value], value)).toBe(value);
    expect(new Set(tree.scopes.map((scope) => scope.key)).size).toBe(tree.scopes.length);
  });
});

it('names are stemmed for folds', () => {
  expect(['layer12', 'layers.3', 'h_0', '7', 'mlp'].map(stem)).toEqual(['layer', 'layers', 'h', '[]', 'mlp']);
});
