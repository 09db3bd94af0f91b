/** Runs what a model calls, each time after the person said yes. */

import { spawn } from "node:child_process";
import { realpath } from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";
import type { Documents } from "./documents.ts";
import { words } from "./errors.ts";
import type { Answer, Asked } from "./messages.ts";
import { folders } from "./places.ts";
import { oneLine, plain } from "./plain.ts";
import type { ToolAnswer, ToolParams } from "./protocol.ts";
import { clipped, edited, useOf, type Use } from "./tool_kinds.ts";

/** Asks the person; a token that is cancelled is a no. */
export type Ask = (session: string, asked: Asked, token: vscode.CancellationToken) => Promise<Answer>;

const ALLOW = { yes: "Allow", no: "Don't allow" } as const;
const RUN_MS = 120_000;
const LARGEST_BYTES = 4 * 1024 * 1024;

export class Tools {
  /** Sessions in which reading was allowed once and for all, until the window closes. */
  private readonly readers = new Set<string>();
  private readonly documents: Documents;
  private readonly folderOf: (session: string) => string | undefined;
  private readonly ask: Ask;

  constructor(documents: Documents, folderOf: (session: string) => string | undefined, ask: Ask) {
    this.documents = documents;
    this.folderOf = folderOf;
    this.ask = ask;
  }

  /** Answers `tool/execute`. Never rejects: what went wrong is told to the model. */
  async execute(call: ToolParams, token: vscode.CancellationToken): Promise<ToolAnswer> {
    if (!vscode.workspace.isTrusted) return failed("the workspace is not trusted: no tool runs in it");
    const use = useOf(call.name, call.arguments);
    if (typeof use === "string") return failed(use);
    try {
      switch (use.kind) {
        case "read":
          return await this.read(call, use, token);
        case "edit":
          return await this.edit(call, use, token);
        case "run":
          return await this.run(call, use, token);
      }
    } catch (error) {
      return failed(words(error));
    }
  }

  private async read(call: ToolParams, use: Extract<Use, { kind: "read" }>, token: vscode.CancellationToken): Promise<ToolAnswer> {
    const file = await inWorkspace(use.path, this.home(call));
    if (!this.readers.has(call.session_id)) {
      const answer = await this.ask(
        call.session_id,
        { call: call.call_id, title: "Read a file?", detail: plain(use.path), ...ALLOW, canRemember: true },
        token,
      );
      if (answer === "no") return refused();
      if (answer === "session") this.readers.add(call.session_id);
    }
    const text = await textOf(file);
    if (text === null) return failed("there is no such file");
    const lines = text.split("\n").slice(use.from - 1, use.from - 1 + use.lines);
    return { content: clipped(lines.join("\n"), 200_000) };
  }

  private async edit(call: ToolParams, use: Extract<Use, { kind: "edit" }>, token: vscode.CancellationToken): Promise<ToolAnswer> {
    const file = await inWorkspace(use.path, this.home(call));
    const before = await textOf(file);
    const result = edited(before, use.oldText, use.newText);
    if ("wrong" in result) return failed(`${use.path}: ${result.wrong}`);
    const name = path.basename(file.fsPath);
    const now = before === null ? this.documents.made(name, "") : file;
    const proposed = this.documents.made(name, result.text);
    await this.documents.diff(now, proposed, `${oneLine(name, 60)}: as it is ↔ as proposed`, vscode.ViewColumn.Beside);
    const answer = await this.ask(
      call.session_id,
      { call: call.call_id, title: "Accept this edit? It is shown as a diff.", detail: plain(use.path), yes: "Accept", no: "Reject", canRemember: false },
      token,
    );
    await this.documents.closeDiff(proposed);
    if (answer === "no") return refused();
    if ((await textOf(file)) !== before) return failed(`${use.path} was changed meanwhile; read it again`);
    if (!(await written(file, before, result.text))) return failed("the editor refused the edit");
    return { content: `${use.path} was ${before === null ? "made" : "changed"}; the person accepted it` };
  }

  private async run(call: ToolParams, use: Extract<Use, { kind: "run" }>, token: vscode.CancellationToken): Promise<ToolAnswer> {
    const folder = this.home(call);
    if (folder === undefined) return failed("no folder is open to run it in");
    const answer = await this.ask(
      call.session_id,
      { call: call.call_id, title: "Run this command?", detail: plain(use.command), ...ALLOW, canRemember: false },
      token,
    );
    return answer === "no" ? refused() : runs(use.command, folder, token);
  }

  /** The workspace folder that a session's tools work in: the one it was started in, else the first. */
  private home(call: ToolParams): string | undefined {
    const given = this.folderOf(call.session_id);
    const open = folders().map((each) => each.uri.fsPath);
    return given !== undefined && open.includes(given) ? given : open[0];
  }
}

/** A path in a workspace folder, links followed; `home` is what relative ones begin at. Throws for one outside. */
async function inWorkspace(given: string, home: string | undefined): Promise<vscode.Uri> {
  if (home === undefined) throw new Error("no folder is open");
  const whole = path.isAbsolute(given) ? path.normalize(given) : path.join(home, given);
  const real = await resolved(whole);
  for (const root of folders()) {
    const relative = path.relative(await resolved(root.uri.fsPath), real);
    if (relative !== "" && !relative.startsWith("..") && !path.isAbsolute(relative)) return vscode.Uri.file(whole);
  }
  throw new Error(`${given} is outside the workspace`);
}

/** Links followed as far as the path is there. */
async function resolved(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    const parent = path.dirname(file);
    return parent === file ? file : path.join(await resolved(parent), path.basename(file));
  }
}

/** A file's text, from its editor if it is open; null if there is no file. */
async function textOf(file: vscode.Uri): Promise<string | null> {
  try {
    const { size } = await vscode.workspace.fs.stat(file);
    if (size > LARGEST_BYTES) throw new Error("the file is too large");
  } catch (error) {
    if (error instanceof vscode.FileSystemError) return null;
    throw error;
  }
  return (await vscode.workspace.openTextDocument(file)).getText();
}

/** Puts a text into a file, through the editor: undo there takes it back. */
async function written(file: vscode.Uri, before: string | null, text: string): Promise<boolean> {
  const change = new vscode.WorkspaceEdit();
  if (before === null) {
    change.createFile(file, { contents: Buffer.from(text) });
    return vscode.workspace.applyEdit(change);
  }
  const document = await vscode.workspace.openTextDocument(file);
  change.replace(file, new vscode.Range(document.positionAt(0), document.positionAt(before.length)), text);
  return (await vscode.workspace.applyEdit(change)) && document.save();
}

function runs(command: string, cwd: string, token: vscode.CancellationToken): Promise<ToolAnswer> {
  return new Promise((resolve) => {
    const child = spawn(command, { cwd, shell: true, stdio: ["ignore", "pipe", "pipe"], windowsHide: true, detached: process.platform !== "win32" });
    let output = "";
    const take = (chunk: Buffer) => {
      // Twice of what is told: the middle is cut out at the end.
      if (output.length < 2_000_000) output += chunk.toString("utf8");
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    const stop = () => {
      // The shell's children too: it leads a group of its own.
      if (child.pid !== undefined && process.platform !== "win32") process.kill(-child.pid, "SIGKILL");
      else child.kill("SIGKILL");
    };
    const timer = setTimeout(stop, RUN_MS);
    const cancelled = token.onCancellationRequested(stop);
    const end = (answer: ToolAnswer) => {
      clearTimeout(timer);
      cancelled.dispose();
      resolve(answer);
    };
    child.once("error", (error) => end(failed(error.message)));
    child.once("close", (code, signal) => {
      const how = signal === null ? `exit code ${code ?? "unknown"}` : `ended by ${signal}`;
      end({ content: `${clipped(output)}\n[${how}]`, is_error: code !== 0 });
    });
  });
}

function refused(): ToolAnswer {
  return failed("the person did not allow it");
}

function failed(why: string): ToolAnswer {
  return { content: why, is_error: true };
}
