/** The commands. Each finds its session, does one thing, and tells a person what went wrong. */

import * as vscode from "vscode";
import type { Compactions } from "./compactions.ts";
import type { Daemon } from "./daemon.ts";
import type { Documents } from "./documents.ts";
import { NoDaemon, wasCancelled, words } from "./errors.ts";
import { report } from "./health.ts";
import { importFile, newChat } from "./opening.ts";
import type { Panels } from "./panels.ts";
import { oneLine, plural } from "./plain.ts";
import { noIcons, search } from "./searching.ts";
import type { Sessions } from "./sessions.ts";
import { nameOf } from "./tree.ts";

/** What the commands work with. */
export interface Bench {
  readonly context: vscode.ExtensionContext;
  readonly daemon: Daemon;
  readonly sessions: Sessions;
  readonly compactions: Compactions;
  readonly documents: Documents;
  readonly panels: Panels;
  readonly activationMs: () => number;
}

type Command = (argument: unknown) => Promise<void>;

/** Registers all of them. */
export function register(bench: Bench): vscode.Disposable[] {
  return Object.entries(commands(bench)).map(([name, command]) =>
    vscode.commands.registerCommand(`compactd.${name}`, async (argument: unknown) => {
      try {
        await command(argument);
      } catch (error) {
        await tell(bench, error);
      }
    }),
  );
}

function commands(bench: Bench): Record<string, Command> {
  const { sessions, compactions, panels, daemon, documents } = bench;
  const on = (act: (id: string) => Promise<void>): Command => async (argument) => {
    const id = await chosen(bench, argument);
    if (id !== null) await act(id);
  };
  return {
    newChat: async () => {
      const id = await newChat(bench);
      if (id !== null) panels.chat(id);
    },
    openChat: on(async (id) => void panels.chat(id)),
    showContext: on(async (id) => void panels.context(id)),
    compact: on((id) => panels.context(id).preview()),
    compactNow: on(async (id) => void (await compactions.run(id, { focus: "", keep: null }))),
    cancelCompaction: on(async (id) => compactions.cancel(id)),
    showDiff: on((id) => compactions.diffLast(id)),
    undo: on((id) => compactions.undo(id)),
    redo: on((id) => compactions.redo(id)),
    search: on(async (id) => {
      const entry = await search(daemon, id);
      if (entry !== null) await panels.context(id).show(entry);
    }),
    importSession: async (argument) => {
      const id = await importFile(bench, argument instanceof vscode.Uri ? argument : null);
      if (id !== null) panels.context(id);
    },
    selectSession: async () => {
      const id = await pickSession(bench);
      if (id === null) return;
      await sessions.resume(id);
      sessions.select(id);
    },
    renameSession: on(async (id) => {
      const title = await vscode.window.showInputBox({ title: "Rename the session", prompt: "Its new title", ignoreFocusOut: true });
      if (!title?.trim()) return;
      await sessions.request("session/configure", { session_id: id, title: title.trim() });
      sessions.relist();
      await sessions.refresh(id);
    }),
    deleteSession: on(async (id) => {
      const sure = await vscode.window.showWarningMessage(
        "Delete this session for good? It cannot be brought back.",
        { modal: true },
        "Delete",
      );
      if (sure !== "Delete") return;
      await sessions.request("session/delete", { session_id: id });
      panels.close(id);
      sessions.dropped(id);
    }),
    refreshSessions: async () => {
      await daemon.connected();
      sessions.relist();
    },
    restart: () => daemon.restart(),
    health: async () => documents.show("compactd health.md", await report(bench.context, daemon, bench.activationMs())),
    showLog: async () => daemon.log.show(),
    menu: () => menu(bench),
  };
}

/** The session that a command is about: the one named, else the page's in front, else the current one, else asked. */
async function chosen(bench: Bench, argument: unknown): Promise<string | null> {
  const { sessions, panels } = bench;
  const id = idOf(argument) ?? panels.active ?? sessions.current?.id ?? sessions.remembered ?? (await pickSession(bench));
  if (id === null) return null;
  await sessions.resume(id);
  sessions.select(id);
  return id;
}

function idOf(argument: unknown): string | null {
  if (typeof argument === "string" && argument !== "") return argument;
  if (typeof argument !== "object" || argument === null || argument instanceof vscode.Uri) return null;
  const id = (argument as { session_id?: unknown }).session_id;
  return typeof id === "string" ? id : null;
}

async function pickSession(bench: Bench): Promise<string | null> {
  const listed = await bench.sessions.list();
  if (listed.length === 0) {
    const picked = await vscode.window.showInformationMessage("There is no session yet.", "New Chat", "Open a Session File");
    if (picked !== undefined) await vscode.commands.executeCommand(picked === "New Chat" ? "compactd.newChat" : "compactd.importSession");
    return null;
  }
  const picked = await vscode.window.showQuickPick(
    listed.map((info) => ({
      label: noIcons(nameOf(info)),
      description: `${plural(info.message_count, "message")} · ${noIcons(oneLine(info.model ?? "", 60))}`,
      id: info.session_id,
    })),
    { title: "Which session?", matchOnDescription: true, ignoreFocusOut: true },
  );
  return picked?.id ?? null;
}

/** What the gauge offers when it is clicked. */
async function menu(bench: Bench): Promise<void> {
  const { phase } = bench.daemon;
  const status = bench.sessions.current;
  const rows: [string, string][] = [];
  if (phase.kind === "failed") {
    rows.push(["$(refresh) Restart the daemon", "restart"], ["$(pulse) Health check", "health"], ["$(output) Show log", "showLog"]);
  } else {
    if (status?.compacting) rows.push(["$(stop-circle) Cancel the compaction", "cancelCompaction"]);
    if (status !== null) {
      rows.push(
        ["$(list-tree) Show context", "showContext"],
        ["$(fold) Compact…", "compact"],
        ["$(comment-discussion) Open chat", "openChat"],
        ["$(search) Search the session…", "search"],
        ["$(discard) Undo the last compaction", "undo"],
        ["$(redo) Redo it", "redo"],
        ["$(diff) What the last compaction changed", "showDiff"],
      );
    }
    rows.push(
      ["$(add) New chat", "newChat"],
      ["$(folder-opened) Open another agent's session file…", "importSession"],
      ["$(list-unordered) Select session…", "selectSession"],
      ["$(pulse) Health check", "health"],
    );
  }
  const picked = await vscode.window.showQuickPick(
    rows.map(([label, command]) => ({ label, command })),
    { title: phase.kind === "failed" ? noIcons(phase.message) : "compactd" },
  );
  if (picked) await vscode.commands.executeCommand(`compactd.${picked.command}`);
}

/** Tells what went wrong: what happened, with what, what to do. */
async function tell(bench: Bench, error: unknown): Promise<void> {
  if (wasCancelled(error)) return;
  const text = words(error);
  bench.daemon.log.error(text);
  if (!(error instanceof NoDaemon)) {
    void vscode.window.showErrorMessage(text);
    return;
  }
  const picked = await vscode.window.showErrorMessage(text, "Health Check", "Settings", "Restart");
  if (picked === "Health Check") await vscode.commands.executeCommand("compactd.health");
  if (picked === "Settings") await vscode.commands.executeCommand("workbench.action.openSettings", "compactd.command");
  if (picked === "Restart") await vscode.commands.executeCommand("compactd.restart");
}
