/** The VS Code client of `topos lsp`: starts the server, tells it of trust and settings, and adds what needs the editor itself. */

import * as os from 'node:os';
import * as vscode from 'vscode';
import { LanguageClient, type LanguageClientOptions, RevealOutputChannelOn, type ServerOptions, State } from 'vscode-languageclient/node';

const SECTION = 'topos';
const SELECTOR = [{ language: 'python', scheme: 'file' }, { language: 'python', scheme: 'untitled' }];

let client: LanguageClient | undefined;
let restarting: Promise<void> = Promise.resolve();
let started = '';
let log: vscode.OutputChannel;
let status: vscode.LanguageStatusItem;
let plan: vscode.WebviewPanel | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  log = vscode.window.createOutputChannel('topos');
  status = vscode.languages.createLanguageStatusItem('topos.status', SELECTOR);
  status.name = 'topos';
  status.command = { command: 'topos.showLog', title: 'show log' };
  context.subscriptions.push(
    log, status,
    vscode.commands.registerCommand('topos.showLog', () => log.show()),
    vscode.commands.registerCommand('topos.restartServer', restart),
    vscode.commands.registerCommand('topos.showPlan', () => atEntry((uri, entry) => run('topos.openPlan', uri, entry))),
    vscode.commands.registerCommand('topos.traceAgain', () => withEditor((editor) => run('topos.retrace', editor.document.uri.toString()))),
    vscode.commands.registerCommand('topos.copyStablehlo', (uri?: string, entry?: string) =>
      uri !== undefined && entry !== undefined ? copyStablehlo(uri, entry) : atEntry(copyStablehlo)),
    vscode.commands.registerCommand('topos.toggleInlayHints', () => run('topos.toggleHints')),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration(SECTION) && programs() !== started) await restart();
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}

async function start(): Promise<void> {
  const settings = vscode.workspace.getConfiguration(SECTION);
  started = programs();
  const [command, ...args] = settings.get<string[]>('command', ['topos', 'lsp']);
  if (command === undefined) {
    tell(vscode.LanguageStatusSeverity.Error, 'topos.command is empty; it names the command that starts the server');
    return;
  }
  // Not the workspace's folder: nothing that lies there may be imported before the workspace is trusted.
  const server: ServerOptions = { command, args, options: { cwd: os.homedir() } };
  const options: LanguageClientOptions = {
    documentSelector: SELECTOR,
    outputChannel: log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    synchronize: { configurationSection: SECTION },
    initializationOptions: {
      untrustedWorkspace: !vscode.workspace.isTrusted,
      trustCommand: 'workbench.trust.manage',
      copyCommand: 'topos.copyStablehlo',
      interpreter: settings.get<string | null>('interpreter') ?? undefined,
      framedViewer: beside(),
      settings: sent(settings),
    },
    middleware: {
      workspace: {
        configuration: async (params, token, next) => {
          const found = await next(params, token);
          return Array.isArray(found) ? found.map((each, k) => (params.items[k]?.section === SECTION ? sent(each ?? {}) : each)) : found;
        },
      },
      window: {
        showDocument: async (params, next) => {
          const uri = vscode.Uri.parse(params.uri, true);
          if (params.external && /^https?$/.test(uri.scheme)) return { success: await showPlan(await vscode.env.asExternalUri(uri)) };
          const shown = await next(params, new vscode.CancellationTokenSource().token);
          return 'success' in shown ? shown : { success: false };
        },
      },
    },
  };
  client = new LanguageClient(SECTION, 'topos', server, options);
  client.onDidChangeState(({ newState }) => {
    if (newState === State.Running) tell(vscode.LanguageStatusSeverity.Information, vscode.workspace.isTrusted ? 'topos' : 'topos: workspace not trusted, nothing is traced');
    if (newState === State.Starting) tell(vscode.LanguageStatusSeverity.Information, 'topos: starting');
    if (newState === State.Stopped) tell(vscode.LanguageStatusSeverity.Warning, 'topos: stopped');
  });
  try {
    await client.start();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    log.appendLine(`${[command, ...args].join(' ')} did not start: ${reason}`);
    log.appendLine('install it with `pip install topos-inspector`, or name another command in the user setting topos.command');
    tell(vscode.LanguageStatusSeverity.Error, 'topos: the server did not start, its log says why');
  }
}

function beside(): boolean {
  return vscode.workspace.getConfiguration(SECTION).get<string>('openPlan', 'beside') === 'beside';
}

/** Shows the plan's page in one panel beside the editor, or in the browser where the user wants that. */
async function showPlan(address: vscode.Uri): Promise<boolean> {
  if (!beside()) return vscode.env.openExternal(address);
  if (plan === undefined) {
    plan = vscode.window.createWebviewPanel('topos.plan', 'topos plan', { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true }, { enableScripts: true, retainContextWhenHidden: true });
    plan.onDidDispose(() => { plan = undefined; });
  } else plan.reveal(undefined, true);
  plan.webview.html = framed(address.toString(true));
  return true;
}

/** A page that is nothing but a frame around another one; its policy lets nothing else in. */
function framed(address: string): string {
  const source = address.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  const origin = new URL(address).origin;
  return `<!DOCTYPE html><html><head><meta http-equiv="Content-Security-Policy" content="default-src 'none'; frame-src ${origin}; style-src 'unsafe-inline'">
<style>html, body, iframe { margin: 0; padding: 0; border: 0; width: 100%; height: 100vh; display: block }</style></head>
<body><iframe title="topos plan" src="${source}"></iframe></body></html>`;
}

/** Ends the server and starts it anew; one restart after the other, since trust and settings often change together. */
function restart(): Promise<void> {
  restarting = restarting.then(async () => {
    const old = client;
    client = undefined;
    try {
      if (old !== undefined && old.state !== State.Stopped) await old.stop();
      await old?.dispose();
    } catch (error) {
      log.appendLine(`the old server did not end in order: ${String(error)}`);
    }
    await start();
  });
  return restarting;
}

/** The settings that the server is started with, as text to compare. */
function programs(): string {
  const settings = vscode.workspace.getConfiguration(SECTION);
  return JSON.stringify([settings.get('command'), settings.get('interpreter'), beside()]);
}

/** The settings as the server reads them: nothing that is left to its defaults, nothing that starts a program. */
function sent(settings: object): Record<string, unknown> {
  const names = ['trace', 'debounceMs', 'consumer', 'fidelity', 'machine', 'cost', 'dialect', 'diagnostics', 'inlayHints', 'codeLens', 'hoverOps'];
  const get = (name: string): unknown => ('get' in settings && typeof settings.get === 'function' ? settings.get(name) : (settings as Record<string, unknown>)[name]);
  return Object.fromEntries(names.map((name) => [name, get(name)]).filter(([, value]) => value !== null && value !== undefined));
}

function tell(severity: vscode.LanguageStatusSeverity, text: string): void {
  status.severity = severity;
  status.text = text;
}

async function run<T>(command: string, ...parameters: unknown[]): Promise<T | undefined> {
  if (client?.state !== State.Running) return undefined;
  try {
    return await client.sendRequest<T>('workspace/executeCommand', { command, arguments: parameters });
  } catch (error) {
    void vscode.window.setStatusBarMessage(`topos: ${error instanceof Error ? error.message : String(error)}`, 8000);
    return undefined;
  }
}

async function withEditor(act: (editor: vscode.TextEditor) => Promise<unknown>): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor !== undefined) await act(editor);
}

/** Calls with the entry around the cursor; asks where there are several and the cursor is in none. */
async function atEntry(act: (uri: string, entry: string) => Promise<unknown>): Promise<void> {
  await withEditor(async (editor) => {
    const uri = editor.document.uri;
    const lenses = (await vscode.commands.executeCommand<vscode.CodeLens[]>('vscode.executeCodeLensProvider', uri)) ?? [];
    const entries = lenses.filter((lens) => lens.command?.command === 'topos.openPlan').map((lens) => String(lens.command?.arguments?.[1]));
    const symbols = (await vscode.commands.executeCommand<vscode.DocumentSymbol[]>('vscode.executeDocumentSymbolProvider', uri)) ?? [];
    const around = symbols.find((symbol) => entries.includes(symbol.name) && symbol.range.contains(editor.selection.active));
    const entry = around?.name ?? (entries.length > 1 ? await vscode.window.showQuickPick(entries, { title: 'topos: which entry?' }) : entries[0]);
    if (entry === undefined) void vscode.window.setStatusBarMessage('topos: this file has no traced entry', 5000);
    else await act(uri.toString(), entry);
  });
}

async function copyStablehlo(uri: string, entry: string): Promise<void> {
  const found = await run<{ text: string }>('topos.emit', uri, entry);
  if (found === undefined) return;
  await vscode.env.clipboard.writeText(found.text);
  void vscode.window.setStatusBarMessage(`topos: the StableHLO of ${entry} is in the clipboard`, 5000);
}
