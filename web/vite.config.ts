import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

import { notices } from './notices';

const { collect, write } = notices('static/NOTICES.txt');

// Fixed file names and one chunk: the built page is committed, so two builds must give the same bytes, and the
// exporter inlines app.js, app.css and the worker into one file.
export default defineConfig({
  plugins: [svelte(), collect(), write],
  base: './',
  build: {
    outDir: 'static',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: true,
    rolldownOptions: {
      output: { entryFileNames: 'app.js', chunkFileNames: '[name].js', assetFileNames: '[name][extname]', codeSplitting: false },
    },
  },
  worker: {
    format: 'iife',
    plugins: () => [collect()],
    rolldownOptions: { output: { entryFileNames: 'layout.worker.js' } },
  },
  test: { include: ['test/**/*.test.ts'], testTimeout: 60_000 },
} as Parameters<typeof defineConfig>[0]);
