/** What is done to a session: compact, take back, put back, pin; and what a compaction changed, as a diff. */

import * as vscode from "vscode";
import type { Daemon } from "./daemon.ts";
import type { Documents } from "./documents.ts";
import { wasCancelled, words } from "./errors.ts";
import { plural } from "./plain.ts";
import type { CompactionResult } from "./protocol.ts";
import { afterwards, contextText, originalsText } from "./rows.ts";
import type { Sessions } from "./sessions.ts";

/** What a person says of a compaction. */
export interface Wish {
  readonly focus: string;
  /** Tokens of the verbatim tail; null for the session's setting. */
  readonly keep: number | null;
}

const TOLD_MS = 15_000;

export class Compactions {
  private readonly running = new Map<string, vscode.CancellationTokenSource>();
  private readonly daemon: Daemon;
  private readonly sessions: Sessions;
  private readonly documents: Documents;

  constructor(daemon: Daemon, sessions: Sessions, documents: Documents) {
    this.daemon = daemon;
    this.sessions = sessions;
    this.documents = documents;
  }

  /** What a compaction would do; nothing is changed. */
  plan(id: string, wish: Wish): Promise<CompactionResult> {
    return this.daemon.request("session/compact", { ...params(id, wish), dry_run: true });
  }

  /** Compacts, and says in the status line what came of it. Null where it was cancelled. */
  async run(id: string, wish: Wish): Promise<CompactionResult | null> {
    this.mayChange();
    const source = new vscode.CancellationTokenSource();
    this.running.set(id, source);
    try {
      const done = await this.sessions.request("session/compact", params(id, wish), source.token);
      told(done.compacted ? afterwards(done) : `No compaction: ${done.reason.replace(/^nothing to compact: /, "")}`);
      return done;
    } catch (error) {
      if (!wasCancelled(error)) throw error;
      told("The compaction was cancelled; nothing changed");
      return null;
    } finally {
      this.running.delete(id);
      source.dispose();
    }
  }

  /** Takes a compaction back that was asked for here. */
  cancel(id: string): void {
    const source = this.running.get(id);
    if (source) source.cancel();
    else void this.daemon.request("agent/abort", { session_id: id }).catch((error: unknown) => this.daemon.log.warn(words(error)));
  }

  async undo(id: string): Promise<void> {
    this.mayChange();
    const done = await this.sessions.request("session/undo", { session_id: id });
    told(`Taken back: the context has ${plural(done.message_count, "message")} again`);
  }

  async redo(id: string): Promise<void> {
    this.mayChange();
    const done = await this.sessions.request("session/redo", { session_id: id });
    told(`In force again: the context has ${plural(done.message_count, "message")}`);
  }

  async pin(id: string, entry: string, pinned: boolean): Promise<void> {
    this.mayChange();
    await this.sessions.request("session/pin", { session_id: id, entry_ids: [entry], pinned });
  }

  /** Two contexts in the diff editor. */
  diff(before: string, after: string, title: string): Promise<void> {
    return this.documents.diff(this.documents.made("before.md", before), this.documents.made("after.md", after), title);
  }

  /** What the last compaction in force changed: the originals behind it, and what stands in their place. */
  async diffLast(id: string): Promise<void> {
    const { entries } = await this.daemon.request("session/history", { session_id: id, in_context: true });
    const summary = entries.find((entry) => entry.kind === "compaction");
    const compaction = summary?.compaction?.compaction_id;
    if (summary === undefined || !compaction) {
      told("No compaction is in force in this session");
      return;
    }
    const behind = await this.daemon.request("session/expand", { session_id: id, compaction_id: compaction });
    const stays = entries.filter((entry) => entry.kind === "message");
    const gone = new Set(behind.entries.map((entry) => entry.entry_id));
    const before = originalsText(behind.entries) + "\n" + contextText(stays.filter((entry) => !gone.has(entry.entry_id)));
    const done = summary.compaction;
    const title = done ? `${afterwards(done)}` : "What the compaction changed";
    await this.diff(before, contextText([summary, ...stays]), title);
  }

  /** Throws if this workspace may not change sessions. */
  private mayChange(): void {
    if (!vscode.workspace.isTrusted) {
      throw new Error("This workspace is not trusted: you can read sessions but not change them. (Manage Workspace Trust)");
    }
  }
}

function params(id: string, wish: Wish): { session_id: string; instructions?: string; keep_recent?: number } {
  return {
    session_id: id,
    ...(wish.focus.trim() === "" ? {} : { instructions: wish.focus.trim() }),
    ...(wish.keep === null ? {} : { keep_recent: wish.keep }),
  };
}

function told(text: string): void {
  // The status line draws icons of `$(name)`.
  vscode.window.setStatusBarMessage(text.replaceAll("$(", "$ ("), TOLD_MS);
}
