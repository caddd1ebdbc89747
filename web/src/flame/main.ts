// Starts the page of `tacho flame` on the data inside it.

import { mount } from 'svelte';
import './flame.css';
import FlamePage from './FlamePage.svelte';
import './page.css';
import type { FlameRun } from './tree';

const target = document.getElementById('app');
const data = JSON.parse(document.getElementById('data')?.textContent ?? 'null') as { runs: FlameRun[] } | null;
if (target !== null) {
  if (data === null) target.textContent = 'This page was made without data; tacho flame makes one with data.';
  else mount(FlamePage, { target, props: { runs: data.runs } });
}
