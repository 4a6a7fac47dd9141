import { expect, test } from 'vitest';

import { verdictWord } from '../src/parts/words';

test('a decline says its word, and never ends in a preposition that takes what follows for the winner', () => {
  expect(verdictWord({ verdict: 'declined', word: 'covered-by' })).toBe('Declined: covered by another');
  expect(verdictWord({ verdict: 'declined', word: 'no-kernel' })).toBe('Declined: no kernel');
  expect(verdictWord({ verdict: 'declined', word: null })).toBe('Declined');
});
