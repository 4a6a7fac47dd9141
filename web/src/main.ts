import { mount } from 'svelte';

import './app.css';
import App from './App.svelte';
import { InlineSource, ServerSource } from './data/source';
import { LayoutClient } from './layout/client';
import workerUrl from './layout/layout.worker?worker&url';
import { Viewer } from './state/viewer.svelte';

/** An exported page holds its data and the worker's text; a served one asks the server with its token. */
function start(): Viewer {
  const data = document.getElementById('topos-data');
  if (data) {
    const text = document.getElementById('topos-worker')!.textContent!;
    const url = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
    return new Viewer(new InlineSource(JSON.parse(data.textContent!)), new LayoutClient(url));
  }
  const token = new URLSearchParams(location.search).get('token') ?? '';
  const worker = new URL(workerUrl, import.meta.url);
  worker.searchParams.set('token', token);
  return new Viewer(new ServerSource(token), new LayoutClient(worker.href));
}

const viewer = start();
mount(App, { target: document.getElementById('app')!, props: { viewer } });
