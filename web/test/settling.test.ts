import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { settling } from '../src/state/settling';

beforeEach(() => {
  vi.stubGlobal('window', globalThis);
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('the end of many moves is told once, with one timer at a time', () => {
  const then = vi.fn();
  const move = settling(160, then);
  for (let i = 0; i < 50; i++) {
    move();
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(16);
  }
  expect(then).not.toHaveBeenCalled();
  vi.advanceTimersByTime(160 - 17);
  expect(then).not.toHaveBeenCalled();
  vi.advanceTimersByTime(2);
  expect(then).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1000);
  expect(then).toHaveBeenCalledTimes(1);
  move();
  vi.advanceTimersByTime(161);
  expect(then).toHaveBeenCalledTimes(2);
});
