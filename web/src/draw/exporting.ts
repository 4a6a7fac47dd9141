/** The drawing as a file: SVG with its computed styles written in, PNG through a canvas, both made in the page. */

const PROPERTIES = [
  'fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linecap', 'stroke-linejoin', 'stroke-opacity',
  'opacity', 'paint-order', 'font-family', 'font-size', 'font-weight', 'text-anchor', 'display',
];

/** Writes the live SVG as a file of its own; what the page's style sheet says is written on every element. */
export function svgText(svg: SVGSVGElement, background: string): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const originals = svg.querySelectorAll('*');
  copy.querySelectorAll('*').forEach((element, i) => {
    const style = getComputedStyle(originals[i]);
    for (const name of PROPERTIES) {
      const value = style.getPropertyValue(name);
      if (value && !(name === 'display' && value !== 'none')) element.setAttribute(name, value);
    }
    for (const name of ['class', 'tabindex', 'role', 'aria-label', 'aria-expanded']) element.removeAttribute(name);
  });
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  const { x, y, width, height } = shown(svg);
  copy.removeAttribute('style');
  for (const [name, value] of Object.entries({ viewBox: `${x} ${y} ${width} ${height}`, width, height })) copy.setAttribute(name, String(value));
  const ground = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  for (const [name, value] of Object.entries({ x, y, width, height, fill: background })) ground.setAttribute(name, String(value));
  copy.insertBefore(ground, copy.querySelector('g'));
  return new XMLSerializer().serializeToString(copy);
}

/** The part of the drawing that its frame shows: around it more is drawn, for gestures to move in. */
function shown(svg: SVGSVGElement): { x: number; y: number; width: number; height: number } {
  const picture = svg.parentElement!;
  const { clientWidth, clientHeight } = picture.parentElement!;
  return { x: -picture.offsetLeft, y: -picture.offsetTop, width: clientWidth, height: clientHeight };
}

export async function pngOf(svg: SVGSVGElement, background: string, scale = 2): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svgText(svg, background)], { type: 'image/svg+xml' }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement('canvas');
    const { width, height } = shown(svg);
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await blobOf(canvas);
  } finally {
    URL.revokeObjectURL(url);
  }
}

export function blobOf(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the drawing is too large for a PNG'))), 'image/png'));
}

export function save(name: string, blob: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
