// Starts the page of `tacho view` on its server, or on the columns inside it.

import { mount } from 'svelte';
import { EmbeddedSource } from './embedded_source';
import { HttpSource } from './http_source';
import type { Source } from './source';
import { App } from './state.svelte';
import View from './View.svelte';
import '../flame/flame.css';
import './view.css';

interface Start {
  served: boolean;
  version?: string;
  live?: boolean;
}

async function start(target: HTMLElement): Promise<void> {
  const start = JSON.parse(document.getElementById('tacho-start')?.textContent ?? 'null') as Start | null;
  const data = document.getElementById('tacho-data');
  if (start === null) {
    target.textContent = 'This page was made without data; tacho view makes one with data.';
    return;
  }
  let source: Source;
  if (start.served) {
    source = new HttpSource(location.href);
  } else {
    const text = data?.textContent ?? '';
    data?.remove();
    source = await EmbeddedSource.open(text);
  }
  const app = new App(source);
  mount(View, { target, props: { app } });
  await app.load();
}

const target = document.getElementById('app');
if (target !== null)
  start(target).catch((error: unknown) => {
    target.textContent = `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
  });
