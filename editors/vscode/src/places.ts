/** The editor's side of finding the daemon: settings, Python environments, folders. */

import { constants } from "node:fs";
import { access, realpath, stat } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { replaced, type Places } from "./find.ts";
import type { Json } from "./protocol.ts";

/** The settings that a start needs. */
export interface Settings {
  readonly command: readonly string[];
  readonly home: string;
  readonly startTimeoutS: number;
  /** `initializationOptions`. */
  readonly forDaemon: Json;
}

/** As they stand now; what a workspace that is not trusted says of them is left out by the editor itself. */
export function settingsNow(): Settings {
  const given = vscode.workspace.getConfiguration("compactd");
  const command = given.get<unknown>("command");
  const words = Array.isArray(command) ? command.filter((word): word is string => typeof word === "string" && word !== "") : [];
  return {
    command: words.map(filled),
    home: filled(given.get<string>("home", "")),
    startTimeoutS: Math.max(1, given.get<number>("startTimeout", 15)),
    forDaemon: { compaction: given.get<Json>("compaction", {}) },
  };
}

/** Where to look, in an untrusted workspace only outside it. */
export async function placesToLook(context: vscode.ExtensionContext, settings: Settings): Promise<Places> {
  const isWindows = process.platform === "win32";
  const bin = isWindows ? "Scripts" : "bin";
  return {
    setting: settings.command,
    bundled: [context.asAbsolutePath("bundled"), path.join(context.asAbsolutePath("bundled"), bin)],
    environments: vscode.workspace.isTrusted ? await environments(bin) : [],
    path: await outside((process.env["PATH"] ?? "").split(path.delimiter).filter((each) => path.isAbsolute(each))),
    isWindows,
  };
}

/** In an untrusted workspace, those of `entries` that are in none of its folders, links followed. */
async function outside(entries: readonly string[]): Promise<string[]> {
  if (vscode.workspace.isTrusted) return [...entries];
  const real = async (each: string) => realpath(each).catch(() => path.resolve(each));
  const tops = await Promise.all(folders().flatMap((each) => [path.resolve(each.uri.fsPath), real(each.uri.fsPath)]));
  const isIn = (each: string) => tops.some((top) => each === top || each.startsWith(top + path.sep));
  const kept: string[] = [];
  for (const entry of entries) if (!isIn(path.resolve(entry)) && !isIn(await real(entry))) kept.push(entry);
  return kept;
}

/** True for a file that may be run. */
export async function exists(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

/** The environment of the daemon: the editor's own, with the folder of its sessions. */
export function environment(settings: Settings): NodeJS.ProcessEnv {
  return settings.home === "" ? process.env : { ...process.env, COMPACTD_HOME: settings.home };
}

/** The folder that the daemon is started in. */
export function folder(): string {
  return folders()[0]?.uri.fsPath ?? homedir();
}

/** The folders of the workspace that are on this disk. */
export function folders(): readonly vscode.WorkspaceFolder[] {
  return (vscode.workspace.workspaceFolders ?? []).filter((each) => each.uri.scheme === "file");
}

async function environments(bin: string): Promise<string[]> {
  const found: string[] = [];
  for (const each of folders()) {
    const interpreter = await selected(each.uri);
    if (interpreter !== null) found.push(path.dirname(interpreter));
  }
  for (const each of folders()) {
    for (const name of [".venv", "venv"]) found.push(path.join(each.uri.fsPath, name, bin));
  }
  return found;
}

/** What ms-python's extension says of its environments; only what is used here. */
interface PythonApi {
  readonly environments?: {
    getActiveEnvironmentPath?(resource: vscode.Uri): { readonly path?: unknown };
  };
}

/** The interpreter that the Python extension has selected, where it is there and running. */
async function selected(resource: vscode.Uri): Promise<string | null> {
  const python = vscode.extensions.getExtension<PythonApi>("ms-python.python");
  if (python === undefined || !python.isActive) return null;
  const chosen = python.exports.environments?.getActiveEnvironmentPath?.(resource).path;
  return typeof chosen === "string" && path.isAbsolute(chosen) ? chosen : null;
}

function filled(word: string): string {
  return replaced(word, { workspaceFolder: folder(), userHome: homedir(), env: process.env });
}
