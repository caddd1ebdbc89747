// Starts the page of `tacho watch --view` on its server.

import { mount } from 'svelte';
import '../view/view.css';
import './watch.css';
import WatchPage from './WatchPage.svelte';

const target = document.getElementById('app');
if (target !== null)
  mount(WatchPage, { target, props: { token: new URL(location.href).searchParams.get('token') ?? '' } });
