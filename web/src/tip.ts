// One tooltip for the whole page: plain text lines beside the pointer, also for the keyboard.

let box: HTMLElement | null = null;

export interface Tip {
  title?: string;
  lines: string[];
}

function show(tip: Tip, x: number, y: number, root: Node): void {
  const place = root instanceof ShadowRoot ? root : document.body;
  if (box === null || box.parentNode !== place) {
    box?.remove();
    box = document.createElement('div');
    box.className = 'tip';
    box.setAttribute('role', 'tooltip');
    place.append(box);
  }
  const parts: HTMLElement[] = [];
  if (tip.title !== undefined) {
    const title = document.createElement('strong');
    title.textContent = tip.title;
    parts.push(title);
  }
  for (const line of tip.lines) {
    const node = document.createElement('p');
    node.textContent = line;
    parts.push(node);
  }
  box.replaceChildren(...parts);
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const left = x + 14 + width > innerWidth - 8 ? Math.max(8, x - width - 10) : x + 14;
  const top = y + 16 + height > innerHeight - 8 ? Math.max(8, y - height - 10) : y + 16;
  box.style.left = `${left}px`;
  box.style.top = `${top}px`;
}

function hide(): void {
  if (box !== null) box.hidden = true;
}

/** Svelte action: <td use:tip={() => ({title, lines})}>; made when it is needed. */
export function tip(
  node: Element,
  make: (() => Tip) | null,
): { update(next: (() => Tip) | null): void; destroy(): void } {
  let current = make;
  const move = (event: Event) => {
    if (current !== null && event instanceof MouseEvent)
      show(current(), event.clientX, event.clientY, node.getRootNode());
  };
  const focus = () => {
    const { left, bottom } = node.getBoundingClientRect();
    if (current !== null && node.matches(':focus-visible')) show(current(), left, bottom - 12, node.getRootNode());
  };
  node.addEventListener('mousemove', move);
  node.addEventListener('mouseleave', hide);
  node.addEventListener('focus', focus);
  node.addEventListener('blur', hide);
  return {
    update(next) {
      current = next;
    },
    destroy() {
      node.removeEventListener('mousemove', move);
      node.removeEventListener('mouseleave', hide);
      node.removeEventListener('focus', focus);
      node.removeEventListener('blur', hide);
    },
  };
}
