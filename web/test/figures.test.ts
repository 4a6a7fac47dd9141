import { describe, expect, it } from 'vitest';

import { bytes, seconds, signed, written } from '../src/data/figures';
import { bytesOf } from '../src/data/model';

describe('figures', () => {
  it.each([[0, '0 s'], [4.12e-6, '4.12 us'], [0.00218, '2.18 ms'], [9.65e-10, '0.965 ns'], [-3e-7, '−300 ns']])('writes %f s as %s', (value, text) => {
    expect(seconds(value)).toBe(text);
  });
  it.each([[0, '0 B'], [1023, '1023 B'], [1024, '1 KiB'], [12.4 * 2 ** 20, '12.4 MiB']])('writes %f bytes as %s', (value, text) => {
    expect(bytes(value)).toBe(text);
  });
  it.each([
    [{ value: 1, unit: 'call' }, '1 call'], [{ value: 5, unit: 'call' }, '5 calls'], [{ value: 7372800, unit: 'flop' }, '7.37 Mflops'],
    [{ value: 0.333, unit: 'share' }, '0.33'], [{ value: 32, unit: 'value' }, '32 values'],
  ])('writes %j as %s', (figure, text) => {
    expect(written(figure)).toBe(text);
  });
  it.each([['f32[2,3]', 24], ['f32[]', 4], ['bf16[0,8]', 0], ['bool[5]', 5], ['opaque', 0]])('counts bytes of %s', (type, size) => {
    expect(bytesOf(type)).toBe(size);
  });
  it.each([
    [-684e-9, 'second', '−684 ns', '−684 ns'], [684e-9, 'second', '684 ns', '+684 ns'], [0, 'second', '0 s', '±0 s'],
    [-1536, 'byte', '−1.5 KiB', '−1.5 KiB'], [-12, 'byte', '−12 B', '−12 B'], [-1, 'call', '−1 call', '−1 call'], [2, 'call', '2 calls', '+2 calls'],
    [-0.125, 'share', '−0.13', '−0.13'], [-2.5e6, 'flop', '−2.5 Mflops', '−2.5 Mflops'], [9999, 'value', '9999 values', '+9999 values'],
  ])('%d %s is written with the sign of a number, never a hyphen', (value, unit, plain, change) => {
    expect(written({ value, unit })).toBe(plain);
    expect(signed({ value, unit })).toBe(change);
  });
});
