import { mount } from 'svelte';

import './app.css';
import App from './App.svelte';
import { ServerSource } from './data/source';
import { LayoutClient } from './layout/client';
import workerUrl from './layout/layout.worker?worker&url';
import { Viewer } from './state/viewer.svelte';

const token = new URLSearchParams(location.search).get('token') ?? '';
const worker = new URL(workerUrl, import.meta.url);
worker.searchParams.set('token', token);
const viewer = new Viewer(new ServerSource(token), new LayoutClient(worker.href));
mount(App, { target: document.getElementById('app')!, props: { viewer } });
