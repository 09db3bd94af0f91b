/** The conversation of a session as a page: streamed, with tools that ask first. */

import * as vscode from "vscode";
import { Coalescer } from "./coalesce.ts";
import { gauge } from "./gauge.ts";
import { fromChat, type Answer, type Asked, type FromChat, type Line, type ToChat } from "./messages.ts";
import { modelFor } from "./opening.ts";
import { PagePanel, type Opening } from "./page_panel.ts";
import { oneLine, plain } from "./plain.ts";
import type { AgentEvent } from "./protocol.ts";
import type { Status } from "./status.ts";
import { linesOf, ruleOf } from "./transcript.ts";

/** Deltas become one message to the page at most that often. */
const DELTA_MS = 50;
/** What another program says is read again at most that often. */
const FOLLOW_MS = 250;
const SHOWN_LINES = 200;

export class ChatPanel extends PagePanel<ToChat, FromChat> {
  private readonly flushing = new Coalescer(() => this.flush(), DELTA_MS);
  private readonly following = new Coalescer(() => void this.transcript().catch((error: unknown) => this.failed(error)), FOLLOW_MS);
  private readonly asks = new Map<string, (answer: Answer) => void>();
  private delta = { thinking: "", text: "" };
  private notes = 0;
  private shownLines = SHOWN_LINES;

  constructor(opening: Opening) {
    super(opening, "chat");
    this.head();
    void this.begin(this.transcript().catch((error: unknown) => this.failed(error)));
  }

  /** Asks the person whether a tool may run. */
  ask(asked: Asked, token: vscode.CancellationToken): Promise<Answer> {
    this.reveal(true);
    return new Promise((resolve) => {
      const settle = (answer: Answer) => {
        if (!this.asks.delete(asked.call)) return;
        cancelled.dispose();
        this.send({ type: "asked", call: asked.call, answer: answer === "no" ? `answered: ${asked.no}` : `answered: ${asked.yes}` });
        resolve(answer);
      };
      const cancelled = token.onCancellationRequested(() => settle("no"));
      this.asks.set(asked.call, settle);
      this.send({ type: "ask", asked });
    });
  }

  override dispose(): void {
    for (const settle of [...this.asks.values()]) settle("no");
    this.flushing.dispose();
    this.following.dispose();
    super.dispose();
  }

  private async transcript(): Promise<void> {
    const { entries } = await this.house.daemon.request("session/history", { session_id: this.id });
    const lines = linesOf(entries);
    const earlier = Math.max(0, lines.length - this.shownLines);
    this.send({ type: "lines", lines: lines.slice(earlier), earlier });
  }

  protected hear(event: AgentEvent): void {
    switch (event.type) {
      case "message_appended":
      case "session_changed":
        // Of another program: what is said here comes as a stream.
        if (this.house.sessions.status(this.id)?.readOnly) this.following.ask();
        return;
      case "message_delta":
        this.delta.text += plain(event.delta);
        this.flushing.ask();
        return;
      case "thinking_delta":
        this.delta.thinking += plain(event.delta);
        this.flushing.ask();
        return;
      case "message_end": {
        this.flush();
        const lines = linesOf([{ entry_id: `m${event.seq}`, kind: "message", at: 0, in_context: true, message: event.message }]);
        this.send({ type: "end", line: lines.find((line) => line.role === "assistant") ?? null });
        for (const line of lines.filter((each) => each.role === "tool")) this.send({ type: "line", line });
        return;
      }
      case "tool_execution_end":
        this.note(`← ${event.name} ${event.is_error ? "failed" : "is done"}`, "tool");
        return;
      case "retry":
        this.note(`The model's server failed (${oneLine(event.reason)}); asked again in ${event.delay_s} s`, "note");
        return;
      case "compaction_end":
        if (event.status === "completed" && event.result) this.send({ type: "line", line: ruleOf(event.compaction_id, event.result) });
        else if (event.status === "failed") this.note(`The compaction failed: ${event.error?.message ?? event.result?.reason ?? ""}`, "error");
        return;
      case "error":
        this.flush();
        this.send({ type: "end", line: null });
        this.note(`${event.message} (${event.code})`, "error");
        return;
      case "agent_abort":
        this.send({ type: "end", line: null });
        this.note("Stopped.", "note");
    }
  }

  private flush(): void {
    if (this.delta.text === "" && this.delta.thinking === "") return;
    this.send({ type: "delta", ...this.delta });
    this.delta = { thinking: "", text: "" };
  }

  private note(text: string, role: Line["role"]): void {
    this.notes += 1;
    this.send({ type: "line", line: { id: `note${this.notes}`, role, text: plain(text) } });
  }

  protected headOf(status: Status, title: string): ToChat {
    const why = status.held
      ? "This session is open in another program: here it can only be read."
      : vscode.workspace.isTrusted
        ? ""
        : "This workspace is not trusted: the conversation can be read.";
    return {
      type: "head",
      head: {
        title,
        model: oneLine(status.model ?? "no model", 80),
        gauge: gauge(this.house.daemon.phase, status).text.replace(/\$\([^)]*\)\s*/g, ""),
        running: status.running,
        canWrite: why === "",
        why,
      },
    };
  }

  protected read(value: unknown): FromChat | null {
    return fromChat(value);
  }

  protected returned(): void {
    this.note("The daemon was started again. What was said is there; what it was answering is not: ask again.", "note");
  }

  protected tell(problem: string): void {
    this.note(problem, "error");
  }

  protected async handle(message: FromChat): Promise<void> {
    switch (message.type) {
      case "ready":
        return;
      case "prompt":
        return this.prompt(message.text);
      case "answer":
        this.asks.get(message.call)?.(message.answer);
        return;
      case "copy":
        await vscode.env.clipboard.writeText(message.text);
        return;
      case "link":
        return openAddress(message.href);
      case "do":
        switch (message.what) {
          case "stop":
            await this.house.daemon.request("agent/abort", { session_id: this.id });
            return;
          case "earlier":
            this.shownLines *= 4;
            return this.transcript();
          case "undo":
            return this.house.compactions.undo(this.id);
          case "context":
            await vscode.commands.executeCommand("compactd.showContext", this.id);
            return;
          case "compact":
            await vscode.commands.executeCommand("compactd.compact", this.id);
        }
    }
  }

  private async prompt(text: string): Promise<void> {
    const { sessions } = this.house;
    if (!vscode.workspace.isTrusted || sessions.status(this.id)?.held) return this.head();
    const { model, readOnly } = await sessions.resume(this.id);
    if (readOnly) {
      // What others said before this prompt is above it.
      await sessions.take(this.id);
      await this.transcript();
    }
    if (model === null) {
      // Of a session file that names none.
      const named = await modelFor(undefined);
      if (named === null) return this.note(`Not sent, for no model was named: ${text}`, "note");
      await sessions.request("model/set", { session_id: this.id, model: named });
    }
    this.note(text, "user");
    await sessions.request("agent/prompt", { session_id: this.id, text });
  }
}

/** Opens an address that a model wrote, after the person has read it. The editor itself asks only in some workspaces. */
async function openAddress(href: string): Promise<void> {
  const asks = !vscode.workspace.isTrusted || vscode.workspace.getConfiguration("workbench").get<boolean>("trustedDomains.promptInTrustedWorkspace") === true;
  const answer = asks ? "Open" : await vscode.window.showInformationMessage("Open this address?", { modal: true, detail: href }, "Open");
  if (answer === "Open") await vscode.env.openExternal(vscode.Uri.parse(href, true));
}
