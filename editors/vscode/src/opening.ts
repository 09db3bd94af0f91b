/** New sessions: a chat, or another agent's session file. */

import * as vscode from "vscode";
import type { Bench } from "./commands.ts";
import { oneLine } from "./plain.ts";
import { folders } from "./places.ts";
import type { Json } from "./protocol.ts";
import { TOOLS } from "./tool_kinds.ts";

/** Starts a session for a chat; null where the person left it. */
export async function newChat(bench: Bench): Promise<string | null> {
  if (!vscode.workspace.isTrusted) throw new Error("This workspace is not trusted: you can read sessions but not start them.");
  const folder = await folderOf();
  if (folder === null) return null;
  const settings = vscode.workspace.getConfiguration("compactd", folder?.uri);
  const model = await modelFor(folder?.uri);
  if (model === null) return null;
  const system = settings.get<string>("chat.systemPrompt", "").trim();
  const status = await bench.sessions.start({
    model,
    ...(folder ? { working_dir: folder.uri.fsPath } : {}),
    ...(system ? { system_prompt: system } : {}),
    ...(settings.get<boolean>("chat.tools", true) && folder ? { tools: TOOLS } : {}),
    compaction: settings.get<Record<string, Json>>("compaction", {}),
  });
  if (folder) bench.sessions.worksIn(status.id, folder.uri.fsPath);
  bench.sessions.select(status.id);
  return status.id;
}

/** Makes a session of a session file, and opens it; null where the person left it. */
export async function importFile(bench: Bench, given: vscode.Uri | null): Promise<string | null> {
  const file = given ?? (await pickFile());
  if (file === null) return null;
  const made = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Window, title: "compactd: reading the session file" },
    () => bench.daemon.request("session/import", { path: file.fsPath }),
  );
  for (const warning of made.warnings) bench.daemon.log.warn(`${file.fsPath}: ${oneLine(warning, 400)}`);
  await bench.sessions.start({ session_id: made.session_id, read_only: !vscode.workspace.isTrusted });
  bench.sessions.select(made.session_id);
  if (made.warnings.length > 0) {
    vscode.window.setStatusBarMessage(`Read as ${made.format}, with ${made.warnings.length} remarks: see the log`, 15_000);
  }
  return made.session_id;
}

/** The folder of a new chat; undefined where none is open, null where the person left it. */
async function folderOf(): Promise<vscode.WorkspaceFolder | undefined | null> {
  const known = folders();
  if (known.length < 2) return known[0];
  return (await vscode.window.showWorkspaceFolderPick({ placeHolder: "In which folder do the chat's tools work?", ignoreFocusOut: true })) ?? null;
}

/** The model of the settings, or else what the person says; null where nothing was said. */
export async function modelFor(folder: vscode.Uri | undefined): Promise<string | null> {
  return vscode.workspace.getConfiguration("compactd", folder).get<string>("model", "").trim() || askModel();
}

async function askModel(): Promise<string | null> {
  const given = await vscode.window.showInputBox({
    title: "Which model?",
    ignoreFocusOut: true,
    prompt: "provider/id. The setting compactd.model keeps it.",
    placeHolder: "anthropic/claude-sonnet-4-5, openai/gpt-4o, ollama/llama3.1",
    validateInput: (text) => (text.trim() === "" || /^[^\s/]+\/\S+$/.test(text.trim()) ? null : "provider/id, as in anthropic/claude-sonnet-4-5"),
  });
  return given?.trim() || null;
}

async function pickFile(): Promise<vscode.Uri | null> {
  const picked = await vscode.window.showOpenDialog({
    title: "A session file of Claude Code, Codex, Gemini CLI, OpenCode, pi, Cline, aider and more",
    openLabel: "Open Session",
    filters: { "Session files": ["jsonl", "json", "md", "traj"], "All files": ["*"] },
  });
  return picked?.[0] ?? null;
}
