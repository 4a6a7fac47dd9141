import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';

export default {
  preprocess: vitePreprocess(),
  compilerOptions: { runes: true, cssHash: ({ filename }) => `t-${filename.split('/').pop().replace('.svelte', '').toLowerCase()}` },
};
