import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import type { Plugin } from 'vite';

/** Writes the licences of every package whose code ended up in the page; one collector serves the page and its worker. */
export function notices(file: string): { collect: () => Plugin; write: Plugin } {
  const packages = new Set<string>();
  const collect = (): Plugin => ({
    name: 'topos-notices-collect',
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle))
        if (chunk.type === 'chunk')
          for (const [id, part] of Object.entries(chunk.modules)) {
            const found = part.renderedLength > 0 ? id.match(/^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//) : null;
            if (found) packages.add(found[1]);
          }
    },
  });
  return {
    collect,
    write: {
      name: 'topos-notices-write',
      apply: 'build', // the test runner loads the same configuration, and bundles nothing
      closeBundle() {
        if (!packages.size) throw new Error('no package was found in the page: its notices would be empty');
        const texts = [...packages].map(noticeOf).sort();
        writeFileSync(file, `The page holds code of these packages.\n\n${texts.join('\n')}`);
      },
    },
  };
}

function noticeOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const licence = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = licence && existsSync(join(folder, licence)) ? readFileSync(join(folder, licence), 'utf8').trim() : `licence: ${license} (${dirname(name)})`;
  return `## ${name} ${version} (${license})\n\n${text}\n`;
}
