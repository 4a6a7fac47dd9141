/** What a reader sets once: kept in the browser's storage where it has one. */

import type { Span } from '../data/document';

export type Theme = 'auto' | 'light' | 'dark';

interface Kept {
  editor: string;
  wheelZooms: boolean;
  theme: Theme;
}

export class Settings {
  /** A link with {path}, {line} and {column}. */
  editor = $state('vscode://file/{path}:{line}:{column}');
  /** Whether the wheel zooms without Ctrl. */
  wheelZooms = $state(false);
  /** The colours; `auto` is what the system has. */
  theme = $state<Theme>('auto');

  constructor() {
    try {
      Object.assign(this, known(JSON.parse(localStorage.getItem('topos') ?? '{}')));
    } catch {
      // no storage here, or someone else's text in it: the defaults stand
    }
    this.colour();
  }

  /** Changes settings; tells whether the browser keeps them. */
  change(settings: Partial<Kept>): boolean {
    Object.assign(this, settings);
    this.colour();
    try {
      localStorage.setItem('topos', JSON.stringify({ editor: this.editor, wheelZooms: this.wheelZooms, theme: this.theme }));
      return true;
    } catch {
      return false; // private windows refuse storage
    }
  }

  private colour(): void {
    if (this.theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.theme;
  }

  /** A link that opens the user's editor at a place below a folder. */
  editorLink(root: string, span: Span): string {
    const path = span.path.startsWith('/') ? span.path : `${root}/${span.path}`;
    const escaped = encodeURI(path).replace(/[?#]/g, encodeURIComponent);
    const parts = { path: escaped, line: String(span.line), column: String(span.column + 1) };
    const link = this.editor.replace('/{path}', escaped.startsWith('/') ? '{path}' : '/{path}'); // no host, as two slashes would mean
    return link.replace(/\{(path|line|column)\}/g, (_, name: keyof typeof parts) => parts[name]);
  }
}

function known(stored: unknown): Partial<Kept> {
  const { editor, wheelZooms, theme } = (stored ?? {}) as Partial<Kept>;
  return {
    ...(typeof editor === 'string' ? { editor } : {}), ...(typeof wheelZooms === 'boolean' ? { wheelZooms } : {}),
    ...(theme === 'light' || theme === 'dark' ? { theme } : {}),
  };
}
