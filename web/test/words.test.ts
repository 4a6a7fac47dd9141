import { expect, test } from 'vitest';

import { apart, verdictWord } from '../src/parts/words';

test('a decline says its word, and never ends in a preposition that takes what follows for the winner', () => {
  expect(verdictWord({ verdict: 'declined', word: 'covered-by' })).toBe('Declined: covered by another');
  expect(verdictWord({ verdict: 'declined', word: 'no-kernel' })).toBe('Declined: no kernel');
  expect(verdictWord({ verdict: 'declined', word: null })).toBe('Declined');
});

test('targets are told without the folder that all of them lie in', () => {
  expect(apart(['examples/a.py:f', 'examples/more/b.py:g'])).toEqual(['a.py:f', 'more/b.py:g']);
  expect(apart(['a/b/m.py:f', 'a/b/m.py:g', 'a/bc/m.py:f'])).toEqual(['b/m.py:f', 'b/m.py:g', 'bc/m.py:f']);
  expect(apart(['m.py:f', 'a/m.py:f'])).toEqual(['m.py:f', 'a/m.py:f']);
  expect(apart(['examples/a.py:f'])).toEqual(['examples/a.py:f']);
  expect(apart([])).toEqual([]);
});
