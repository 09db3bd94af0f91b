/** The conversation of a session as a page: streamed, with tools that ask first. */

import * as vscode from "vscode";
import { Coalescer } from "./coalesce.ts";
import { gauge } from "./gauge.ts";
import { fromChat, type Answer, type Asked, type FromChat, type Line, type ToChat } from "./messages.ts";
import { modelFor } from "./opening.ts";
import { PagePanel, type Opening } from "./page_panel.ts";
import { oneLine, plain } from "./plain.ts";
import type { AgentEvent, HistoryParams, HistoryResult, MessageAppended, UsageUpdate } from "./protocol.ts";
import { CLIENT } from "./sessions.ts";
import type { Status } from "./status.ts";
import { linesOf, NO_LONGER, ruleOf } from "./transcript.ts";

/** Deltas become one message to the page at most that often. */
const DELTA_MS = 50;
/** What another program says is read again at most that often. */
const FOLLOW_MS = 250;
const SHOWN_LINES = 200;

/** A prompt of this window that is not in the session yet. */
interface Sent {
  readonly line: Line;
  /** Its id, once the daemon has it. */
  turn: string | null;
  /** It waits for others. */
  isQueued: boolean;
}

export class ChatPanel extends PagePanel<ToChat, FromChat> {
  private readonly flushing = new Coalescer(() => this.flush(), DELTA_MS);
  private readonly following = new Coalescer(() => void this.transcript().catch((error: unknown) => this.failed(error)), FOLLOW_MS);
  private readonly asks = new Map<string, (answer: Answer) => void>();
  private delta = { thinking: "", text: "" };
  private notes = 0;
  private shownLines = SHOWN_LINES;
  /** The entries that are on the page. */
  private shown = new Set<string>();
  /** By entry, the other client that sent it. */
  private readonly authors = new Map<string, string>();
  private sent: Sent[] = [];
  /** Prompts that could not be sent, until one could. */
  private unsent: Line[] = [];
  private readonly turns = new Set<string>();
  /** Prompts that the daemon has not taken up yet. */
  private asking = 0;
  /** By compaction, whether it is in force. */
  private rules = new Map<string, boolean>();
  private isCompacted = false;
  private epoch: number | null = null;
  /** Events that wait until an answer of the daemon is on the page. */
  private held: AgentEvent[] | null = null;
  private heldForPrompt: AgentEvent[] | null = null;

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

  /** Shows the whole conversation as it is stored, and below it the prompts that wait. */
  private transcript(): Promise<void> {
    return this.history({}, (entries) => {
      const lines = linesOf(entries, this.authors);
      const earlier = Math.max(0, lines.length - this.shownLines);
      this.delta = { thinking: "", text: "" };
      this.shown = new Set(entries.map((entry) => entry.entry_id));
      this.rules = new Map(entries.filter((entry) => entry.kind === "compaction").map((entry) => [entry.entry_id, entry.in_context]));
      this.epoch = this.house.sessions.status(this.id)?.usage.epoch ?? null;
      this.send({ type: "lines", lines: lines.slice(earlier), earlier });
      for (const line of [...this.sent.map((each) => each.line), ...this.unsent]) this.send({ type: "line", line });
    });
  }

  /** Reads entries of the history. Events wait until `show` has shown them. */
  private async history(more: Omit<HistoryParams, "session_id">, show: (entries: HistoryResult["entries"]) => void): Promise<void> {
    const held = this.hold();
    try {
      const { entries } = await this.house.daemon.request("session/history", { session_id: this.id, ...more });
      if (this.held === held) show(entries);
    } finally {
      this.release(held);
    }
  }

  /** Lets events wait from now on. */
  private hold(): AgentEvent[] {
    this.held = [...(this.held ?? [])];
    return this.held;
  }

  /** Shows the events that waited, unless others wait for more, or the daemon that they came from is gone. */
  private release(held: AgentEvent[] | null): void {
    if (held === null || this.held !== held) return;
    this.held = null;
    for (const event of held) this.hear(event);
  }

  protected hear(event: AgentEvent): void {
    if (this.held !== null) this.held.push(event);
    else this.show(event);
  }

  private show(event: AgentEvent): void {
    switch (event.type) {
      case "message_appended":
        this.appended(event);
        return;
      case "session_changed":
        if (this.isFollowed || event.what === "branch") this.following.ask();
        return;
      case "usage_update":
        if (event.usage.epoch === this.epoch) return;
        this.epoch = event.usage.epoch;
        void this.lookAtRules(event).catch((error: unknown) => this.failed(error));
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
        if (event.entry_id !== null && this.shown.has(event.entry_id)) {
          // It came with the history.
          this.send({ type: "end", line: null, stays: false });
          return;
        }
        if (event.entry_id !== null) this.shown.add(event.entry_id);
        const lines = linesOf([{ entry_id: `m${event.seq}`, kind: "message", at: 0, in_context: true, message: event.message }]);
        this.send({ type: "end", line: lines.find((line) => line.role === "assistant") ?? null, stays: true });
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
        if (event.status === "completed" && event.result) {
          if (this.shown.has(event.compaction_id)) return;
          this.shown.add(event.compaction_id);
          this.rules.set(event.compaction_id, true);
          this.isCompacted = true;
          const other = nameOfOther(event.client);
          this.send({ type: "line", line: ruleOf(event.compaction_id, event.result, other === null ? "" : `by ${other}`) });
        }
        else if (event.status === "failed") this.note(`The compaction failed: ${event.error?.message ?? event.result?.reason ?? ""}`, "error");
        return;
      case "error":
        this.flush();
        this.send({ type: "end", line: null, stays: true });
        this.note(`${event.message} (${event.code})`, "error");
        return;
      case "agent_abort":
        this.send({ type: "end", line: null, stays: true });
        this.note("Stopped.", "note");
    }
  }

  private get isFollowed(): boolean {
    return this.house.sessions.status(this.id)?.readOnly === true;
  }

  private appended(event: MessageAppended): void {
    const { entry_id: entry, turn_id: turn } = event;
    if (turn !== undefined && this.turns.has(turn)) {
      this.takenUp(turn, entry);
    } else if (this.shown.has(entry)) {
      return;
    } else if (this.isFollowed || turn === undefined) {
      this.following.ask();
    } else if (event.role !== "user") {
      // It was shown as it came.
      this.shown.add(entry);
    } else if (this.asking > 0) {
      // It may be the one that was just sent: the daemon's answer says so.
      this.heldForPrompt = this.hold();
      this.heldForPrompt.push(event);
    } else {
      this.authors.set(entry, oneLine(event.client ?? "another program", 40));
      const shown = this.history({ from: entry, limit: 1 }, (entries) => {
        this.shown.add(entry);
        for (const line of linesOf(entries, this.authors)) this.send({ type: "line", line });
      });
      void shown.catch((error: unknown) => this.failed(error));
    }
  }

  /** A prompt of this window is in the session now. One that had to wait goes below what was said meanwhile. */
  private takenUp(turn: string, entry: string): void {
    const sent = this.sent.find((each) => each.turn === turn);
    this.sent = this.sent.filter((each) => each !== sent);
    if (sent !== undefined && this.shown.has(entry)) this.send({ type: "gone", id: sent.line.id });
    else if (sent?.isQueued) this.send({ type: "line", line: sent.line });
    this.shown.add(entry);
  }

  /** Marks the compactions that are in force, after something changed the context. */
  private async lookAtRules(event: UsageUpdate): Promise<void> {
    const wasCompacted = this.isCompacted;
    this.isCompacted = false;
    if (this.rules.size === 0) return;
    await this.history({ in_context: true }, (entries) => {
      const inForce = new Set(entries.map((entry) => entry.compaction?.compaction_id));
      const changed = [...this.rules].filter(([id, was]) => was !== inForce.has(id)).map(([id]) => id);
      for (const id of changed) {
        this.rules.set(id, inForce.has(id));
        this.send({ type: "mark", id, mark: inForce.has(id) ? "" : NO_LONGER });
      }
      const other = nameOfOther(event.client);
      if (changed.length === 0 || wasCompacted || other === null) return;
      const isBack = changed.some((id) => inForce.has(id));
      this.note(isBack ? `${other} put the compaction in force again` : `${other} took the compaction back`, "note");
    });
  }

  private flush(): void {
    if (this.delta.text === "" && this.delta.thinking === "") return;
    this.send({ type: "delta", ...this.delta });
    this.delta = { thinking: "", text: "" };
  }

  private note(text: string, role: Line["role"]): void {
    this.send({ type: "line", line: this.lineOf(text, role) });
  }

  private lineOf(text: string, role: Line["role"]): Line {
    this.notes += 1;
    return { id: `note${this.notes}`, role, text: plain(text) };
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

  protected returned(isNew: boolean): void {
    // What the daemon before would have said does not come any more.
    this.held = null;
    const read = this.reread().then(() => {
      if (isNew) this.note("The daemon was started again. What was said is there; what it was answering is not: ask again.", "note");
    });
    void read.catch((error: unknown) => this.failed(error));
  }

  /** Reads everything again. A prompt that got into the session meanwhile is not shown as one that waits, too. */
  private async reread(): Promise<void> {
    const { prompts } = await this.house.daemon.request("agent/state", { session_id: this.id });
    const queued = new Set(prompts?.map((each) => each.prompt_id));
    this.sent = this.sent.filter((each) => each.turn === null || queued.has(each.turn));
    await this.transcript();
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
    await this.sendPrompt(text);
  }

  private async sendPrompt(text: string): Promise<void> {
    const sent: Sent = { line: this.lineOf(text, "user"), turn: null, isQueued: false };
    this.sent.push(sent);
    this.send({ type: "line", line: sent.line });
    this.asking += 1;
    try {
      const { turn_id: turn, queued } = await this.house.sessions.request("agent/prompt", { session_id: this.id, text });
      sent.turn = turn;
      sent.isQueued = queued;
      this.turns.add(turn);
      this.unsent = [];
      if (queued) this.send({ type: "line", line: { ...sent.line, who: "You (waits until the answer before it is done)" } });
    } catch (error) {
      this.sent = this.sent.filter((each) => each !== sent);
      const line = { ...sent.line, who: "You (not sent)" };
      this.unsent.push(line);
      this.send({ type: "line", line });
      throw error;
    } finally {
      this.asking -= 1;
      this.release(this.heldForPrompt);
    }
  }
}

/** The name of another client, in one line; null where it is this one or not known. */
function nameOfOther(client: string | undefined): string | null {
  return client === undefined || client === CLIENT ? null : oneLine(client, 40);
}

/** Opens an address that a model wrote, after the person has read it. The editor itself asks only in some workspaces. */
async function openAddress(href: string): Promise<void> {
  const asks = !vscode.workspace.isTrusted || vscode.workspace.getConfiguration("workbench").get<boolean>("trustedDomains.promptInTrustedWorkspace") === true;
  const answer = asks ? "Open" : await vscode.window.showInformationMessage("Open this address?", { modal: true, detail: href }, "Open");
  if (answer === "Open") await vscode.env.openExternal(vscode.Uri.parse(href, true));
}
