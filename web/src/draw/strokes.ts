/** The drawing from far as an SVG file: a pen that writes every stroke down instead of drawing it. */

import { drawFar, FAR_FONT, type FarView, type Fills, type Pen } from './far';
import type { Palette } from './palette';

/** Writes the drawing from far as a file of its own; `measure` tells how wide a text is. */
export function strokes(view: FarView, measure: (text: string) => number): string {
  const { width, height, colours } = view;
  const pen = new Strokes(measure);
  drawFar(pen, view, FILLS(colours));
  const size = `width="${width}" height="${height}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ${size}>${patterns(colours)}${pen.written.join('')}</svg>`;
}

const FILLS = (colours: Palette): Fills => ({ taken: colours.verdict.taken, near_miss: colours.node, declined: 'url(#declined)', blocked: 'url(#blocked)' });

function patterns({ canvas, verdict }: Palette): string {
  const tile = (id: string, inside: string): string => `<pattern id="${id}" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="${canvas}"/>${inside}</pattern>`;
  const hatch = `<path d="M-1,6L6,-1M-6,6L1,-1M4,6L11,-1" stroke="${verdict.declined}" stroke-width="2.2"/>`;
  const dots = `<path d="M0,0h2v2h-2zM2.5,2.5h2v2h-2z" fill="${verdict.blocked}"/>`;
  return `<defs>${tile('declined', hatch)}${tile('blocked', dots)}</defs>`;
}

interface State {
  x: number;
  y: number;
  k: number;
  look: [string, string, number, number];
}

class Strokes implements Pen {
  readonly written: string[] = [];
  fillStyle: Pen['fillStyle'] = '#000';
  strokeStyle: Pen['strokeStyle'] = '#000';
  lineWidth = 1;
  globalAlpha = 1;
  font = FAR_FONT;
  private at = { x: 0, y: 0, k: 1 };
  private readonly saved: State[] = [];
  private path = '';

  constructor(private readonly measure: (text: string) => number) {}

  save(): void {
    this.saved.push({ ...this.at, look: [String(this.fillStyle), String(this.strokeStyle), this.lineWidth, this.globalAlpha] });
  }
  restore(): void {
    const { look, ...at } = this.saved.pop()!;
    [this.at, [this.fillStyle, this.strokeStyle, this.lineWidth, this.globalAlpha]] = [at, look];
  }
  translate(x: number, y: number): void {
    this.at = { ...this.at, x: this.at.x + x * this.at.k, y: this.at.y + y * this.at.k };
  }
  scale(by: number): void {
    this.at = { ...this.at, k: this.at.k * by };
  }
  fillRect(x: number, y: number, width: number, height: number): void {
    this.written.push(`<rect ${this.box(x, y, width, height)} fill="${String(this.fillStyle)}"${this.alpha()}/>`);
  }
  strokeRect(x: number, y: number, width: number, height: number): void {
    this.written.push(`<rect ${this.box(x, y, width, height)} fill="none"${this.line()}/>`);
  }
  beginPath(): void {
    this.path = '';
  }
  moveTo(x: number, y: number): void {
    this.path += `M${this.point(x, y)}`;
  }
  lineTo(x: number, y: number): void {
    this.path += `L${this.point(x, y)}`;
  }
  /** Whole circles alone are drawn. */
  arc(x: number, y: number, radius: number): void {
    const r = round(radius * this.at.k);
    this.path += `M${this.point(x - radius, y)}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0`;
  }
  fill(): void {
    this.written.push(`<path d="${this.path}" fill="${String(this.fillStyle)}"${this.alpha()}/>`);
  }
  stroke(): void {
    this.written.push(`<path d="${this.path}" fill="none"${this.line()}/>`);
  }
  fillText(text: string, x: number, y: number): void {
    const [left, base] = this.point(x, y).split(',');
    this.written.push(`<text x="${left}" y="${base}" font-family="system-ui, DejaVu Sans, sans-serif" font-size="11" font-weight="600" fill="${String(this.fillStyle)}"${this.alpha()}>${escaped(text)}</text>`);
  }
  measureText(text: string): { width: number } {
    return { width: this.measure(text) };
  }

  private point(x: number, y: number): string {
    return `${round(x * this.at.k + this.at.x)},${round(y * this.at.k + this.at.y)}`;
  }
  private box(x: number, y: number, width: number, height: number): string {
    const [left, top] = this.point(x, y).split(',');
    return `x="${left}" y="${top}" width="${round(width * this.at.k)}" height="${round(height * this.at.k)}"`;
  }
  private line(): string {
    return ` stroke="${String(this.strokeStyle)}" stroke-width="${round(this.lineWidth * this.at.k)}"${this.alpha()}`;
  }
  private alpha(): string {
    return this.globalAlpha < 1 ? ` opacity="${round(this.globalAlpha)}"` : '';
  }
}

const round = (value: number): number => Math.round(value * 100) / 100;
const escaped = (text: string): string => text.replace(/[<>&"]/g, (sign) => ({ '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' })[sign]!);
