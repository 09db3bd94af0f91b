/** Registers what there is. The daemon is started at the first need. */

import * as vscode from "vscode";
import { apiOf, type Api } from "./api.ts";
import { register } from "./commands.ts";
import { Compactions } from "./compactions.ts";
import { Daemon } from "./daemon.ts";
import { Documents } from "./documents.ts";
import { words } from "./errors.ts";
import { GaugeItem } from "./gauge_item.ts";
import { Panels } from "./panels.ts";
import { settingsNow } from "./places.ts";
import { Sessions } from "./sessions.ts";
import { Tools } from "./tools.ts";
import { SessionTree } from "./tree.ts";

/** When this bundle began to run; `esbuild.mjs` puts it first. */
declare const loadingBegan: number;
declare const loadingCpu: NodeJS.CpuUsage;
const loadedCpu = process.cpuUsage(loadingCpu);
const loadedMs = performance.now() - loadingBegan;

export function activate(context: vscode.ExtensionContext): Api {
  const begun = performance.now();
  const begunCpu = process.cpuUsage();
  const log = vscode.window.createOutputChannel("compactd", { log: true });
  const daemon = new Daemon(context, log, settingsNow);
  const sessions = new Sessions(daemon, context.workspaceState);
  const documents = new Documents();
  const compactions = new Compactions(daemon, sessions, documents);
  const panels = new Panels({ extension: context.extensionUri, daemon, sessions, compactions });
  const tools = new Tools(documents, (id) => sessions.folderOf(id), (id, asked, token) => panels.ask(id, asked, token));
  daemon.runTools((call, token) => tools.execute(call, token));
  const item = new GaugeItem(daemon, sessions);
  const tree = new SessionTree(daemon, sessions);
  let activationMs = 0;
  const commands = register({ context, daemon, sessions, compactions, documents, panels, activationMs: () => activationMs });
  context.subscriptions.push(
    vscode.window.registerTreeDataProvider("compactd.sessions", tree),
    vscode.workspace.onDidChangeConfiguration((change) => reconfigure(daemon, change)),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void daemon.restart().catch(() => undefined)),
    vscode.workspace.onDidChangeWorkspaceFolders(() => lookAgain(daemon)),
    ...commands, tree, item, panels, documents, sessions, daemon, log,
  );
  const remembered = sessions.remembered;
  if (remembered !== null) void comeBack(daemon, sessions, remembered);
  activationMs = loadedMs + performance.now() - begun;
  const cpu = process.cpuUsage(begunCpu);
  const cpuMs = (loadedCpu.user + loadedCpu.system + cpu.user + cpu.system) / 1000;
  log.info(`activated in ${activationMs.toFixed(1)} ms (${cpuMs.toFixed(1)} ms of processor time), loading included`);
  return apiOf(sessions, compactions, item);
}

/** The session that was current here last time, once the editor has time. */
async function comeBack(daemon: Daemon, sessions: Sessions, id: string): Promise<void> {
  try {
    await sessions.resume(id);
    sessions.select(id);
  } catch (error) {
    daemon.log.info(`session ${id} of last time is not here: ${words(error)}`);
  }
}

/** A folder that was added may hold the daemon that was not found before. */
function lookAgain(daemon: Daemon): void {
  if (daemon.phase.kind !== "failed") return;
  daemon.restart().catch((error: unknown) => daemon.log.error(words(error)));
}

/** Another program or home means another daemon; new settings of compaction are told to this one. */
function reconfigure(daemon: Daemon, change: vscode.ConfigurationChangeEvent): void {
  const needsStart = ["command", "home", "compaction"].some((name) => change.affectsConfiguration(`compactd.${name}`));
  if (!needsStart || daemon.phase.kind === "off") return;
  daemon.restart().catch((error: unknown) => daemon.log.error(words(error)));
}
