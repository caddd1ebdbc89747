// Starts the page on the JSON inside it.

import { mount } from 'svelte';
import App from './App.svelte';
import type { Report } from './document';
import './style.css';

const app = document.getElementById('app');
const data = document.getElementById('data');
if (app !== null && data !== null) {
  const report = JSON.parse(data.textContent ?? 'null') as Report | null;
  data.remove();
  if (report === null || report.schema !== 'tacho-analysis/1') {
    app.textContent = 'This page was made without data.';
  } else {
    mount(App, {
      target: app,
      props: { report, expose: (shown) => ((window as unknown as { tacho: unknown }).tacho = shown) },
    });
  }
}
