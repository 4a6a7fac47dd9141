import { describe, expect, it } from 'vitest';

import { apply, unified } from '../src/data/patch';
import { glob, parse, searchOps } from '../src/search/grammar';
import { read, write, type View } from '../src/state/url';
import { model } from './graphs';

describe('search', () => {
  it.each([
    ['conv*', 'convolution', true], ['*x512', '128x512', true], ['a?c', 'abc', true], ['a?c', 'ac', false], ['*', '', true], ['a*b*c', 'axxbyyc', true], ['a*b*c', 'axxcyyb', false],
  ])('glob %s on %s', (pattern, text, holds) => {
    expect(glob(pattern, text)).toBe(holds);
  });
  it('takes no time on a nasty glob', () => {
    expect(glob(`${'*a'.repeat(40)}*b`, 'a'.repeat(400))).toBe(false);
  });
  it('reads fields, comparisons, negations, and tells fields and numbers that are none', () => {
    expect(parse('op:matmul bytes>1e6 -state:taken conv nofield:x bytes>abc us>= line:1')).toEqual({
      terms: [
        { field: 'op', test: ':', text: 'matmul', negated: false }, { field: 'bytes', test: '>', text: '1e6', negated: false },
        { field: 'state', test: ':', text: 'taken', negated: true }, { field: '', test: '', text: 'conv', negated: false },
        { field: 'line', test: ':', text: '1', negated: false },
      ],
      faults: ['no field nofield', 'bytes: abc is no number', 'us: = is no number'],
    });
  });
  const m = model([{ op: 'input', type: 'f32[128,512]' }, { op: 'matmul', reads: [0, 0], scope: ['net', 'block1'] }, { op: 'exp', reads: [1], type: 'bf16[4]' }]);
  it.each([
    ['op:mat*', [1]], ['shape:*x512', [0]], ['dtype:bf16', [2]], ['scope:net/*', [1]], ['bytes>1000', [0]], ['value:%2', [2]], ['x0', [0]], ['-op:exp', [0, 1]], ['line:1', [0, 1, 2]], ['line>1', []],
  ])('%s', (query, values) => {
    expect(searchOps(m, parse(query).terms, () => [])).toEqual(values);
  });
});

describe('the URL', () => {
  it.each<View>([
    {}, { plan: 'cd7b115c', selection: 'r:convolution/3f/enc.l0/0', query: 'op:a b&c=d', camera: [-12, 40, 0.75] },
    { open: ['+/layers/layer × 40', '-/a,b'], shown: { '/x=y/layer × 3': 2 }, observe: [1, 2], ignore: [0], off: ['softmax'], consumer: 'stablehlo', machine: 'a100', filter: ['blocked'], compare: 'cd7b115c@previous' },
    { query: 'matmul', hit: 3, filter: [], order: 'measured', unmeasured: true, unfolded: ['+/net/layer × 3'], kernel: 2, generated: true, differences: true, file: 'a,b/net&.py', place: [3, 0, 3, 12] },
  ])('brings back %j', (view) => {
    expect(read(`#${write(view)}`)).toEqual({ ...Object.fromEntries(Object.keys(read('')).map((key) => [key, undefined])), ...view });
  });
  it('takes nonsense for nothing', () => {
    expect(read('#at=1,2&observe=x,-1&q=%E0%A4%A').camera).toBeUndefined();
    expect(read('#observe=x,-1,3').observe).toEqual([3]);
    expect(read('#shown=a=-1,b=1.5,c=2').shown).toEqual({ c: 2 });
    expect(read('#show=blocked,nothing').filter).toEqual(['blocked']);
    expect(read('#place=1,2,x,4').place).toBeUndefined();
    expect([read('#hit=0').hit, read('#hit=1.5').hit, read('#order=x').order]).toEqual([undefined, undefined, undefined]);
  });
});

describe('patches', () => {
  const text = 'a\nb = f(x)\nobserve(b)\nc\n';
  const drop = { path: 'm.py', line: 3, column: 0, end_line: 4, end_column: 0, text: '' };
  it('removes a line', () => {
    expect(apply(text, [drop])).toBe('a\nb = f(x)\nc\n');
    expect(unified('m.py', text, [drop])).toBe('--- a/m.py\n+++ b/m.py\n@@ -1,5 +1,4 @@\n a\n b = f(x)\n-observe(b)\n c\n \n');
  });
  it('counts columns in code points', () => {
    expect(apply('x = "𝒳" + y\n', [{ path: 'm', line: 1, column: 10, end_line: 1, end_column: 11, text: 'z' }])).toBe('x = "𝒳" + z\n');
  });
  it('applies several edits of one file', () => {
    const edits = [drop, { path: 'm.py', line: 2, column: 4, end_line: 2, end_column: 8, text: 'g(x)' }];
    expect(apply(text, edits)).toBe('a\nb = g(x)\nc\n');
  });
});
