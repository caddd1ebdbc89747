// A drawing of the page as a file of its own.

/** What style sheets say is written into the elements. */
export function standalone(from: SVGSVGElement): string {
  const copy = from.cloneNode(true) as SVGSVGElement;
  const properties = [
    'fill',
    'fill-opacity',
    'stroke',
    'stroke-width',
    'stroke-dasharray',
    'stroke-opacity',
    'opacity',
    'font-family',
    'font-size',
    'font-weight',
  ];
  const originals = [from, ...from.querySelectorAll('*')];
  [copy, ...copy.querySelectorAll('*')].forEach((element, i) => {
    const style = getComputedStyle(originals[i]);
    for (const property of properties) {
      const value = style.getPropertyValue(property);
      if (value !== '') element.setAttribute(property, value);
    }
    element.removeAttribute('class');
    element.removeAttribute('tabindex');
    const label = element.getAttribute('aria-label');
    if (label !== null && element !== copy) {
      const title = document.createElementNS('http://www.w3.org/2000/svg', 'title');
      title.textContent = label;
      element.append(title);
    }
  });
  const back = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  back.setAttribute('width', '100%');
  back.setAttribute('height', '100%');
  back.setAttribute('fill', getComputedStyle(document.body).backgroundColor);
  copy.prepend(back);
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('width', String(from.viewBox.baseVal.width));
  copy.setAttribute('height', String(from.viewBox.baseVal.height));
  return new XMLSerializer().serializeToString(copy);
}

/** Offers the drawing as a download. */
export function saveSvg(from: SVGSVGElement, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([standalone(from)], { type: 'image/svg+xml' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
