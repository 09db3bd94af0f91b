/** The context of a session as a page: entries with sizes, summaries that open, a compaction's preview. */

import * as vscode from "vscode";
import { Coalescer } from "./coalesce.ts";
import { ContextModel } from "./context_model.ts";
import { words } from "./errors.ts";
import { gauge, hover } from "./gauge.ts";
import { fromContext, type FromContext, type Plan, type ToContext } from "./messages.ts";
import { PagePanel, type Opening } from "./page_panel.ts";
import { count, plural } from "./plain.ts";
import type { AgentEvent, CompactionResult } from "./protocol.ts";
import { contextText, entryText, inWords, originalRows, plannedText, rowsOf } from "./rows.ts";
import { roleOf, wholeText } from "./said.ts";
import { changesContext, type Status } from "./status.ts";
import { workInBrief, workRows } from "./work.ts";

const LOOK_MS = 120;

export class ContextPanel extends PagePanel<ToContext, FromContext> {
  private readonly model: ContextModel;
  private readonly looking = new Coalescer(() => void this.look(), LOOK_MS);
  private plan: { result: CompactionResult; shown: Plan } | null = null;
  private isAnother = false;
  private isAskingWork = false;
  private isWorkStale = false;
  private lastWork = "";
  private sentAt = 0;
  private historyMs = 0;
  private pageMs = 0;

  constructor(opening: Opening) {
    super(opening, "context");
    this.model = new ContextModel(this.house.daemon, this.house.sessions, this.id);
    this.head();
    void this.begin(this.first());
  }

  /** Shows an entry, wherever it is. */
  async show(entry: string): Promise<void> {
    await this.look();
    this.send({ type: "reveal", id: entry });
    await this.entry(entry);
  }

  /** Asks what a compaction would do, and shows it. */
  async preview(focus = "", keep: number | null = null): Promise<void> {
    this.send({ type: "said", text: "Asking what a compaction would do…" });
    const result = await this.house.compactions.plan(this.id, { focus, keep });
    await this.model.refresh(true);
    const kept = keep ?? this.keepNow();
    this.plan = {
      result,
      shown: { words: inWords(result), focus, keep: kept, canCompact: result.messages_removed > 0 || result.pruned_tool_results > 0 },
    };
    this.rows();
    this.send({ type: "said", text: "" });
  }

  override dispose(): void {
    this.looking.dispose();
    super.dispose();
  }

  private async first(): Promise<void> {
    try {
      await this.model.begin();
      this.historyMs = since(this.openedAt);
      this.sentAt = performance.now();
      this.rows();
    } catch (error) {
      this.failed(error);
    }
  }

  private async look(): Promise<void> {
    try {
      const isAnother = this.isAnother;
      this.isAnother = false;
      const change = await this.model.refresh(isAnother);
      if (change.kind === "none") return;
      if (change.kind === "all") this.plan = null;
      if (change.kind === "more" && this.plan === null) this.send({ type: "more", rows: rowsOf(change.entries) });
      else this.rows();
      void this.work();
    } catch (error) {
      this.house.daemon.log.debug(`context of ${this.id}: ${words(error)}`);
    }
  }

  /** Asks where the work stands, once at a time, and shows it if it is another thing than before. */
  private async work(): Promise<void> {
    this.isWorkStale = this.isAskingWork;
    if (this.isAskingWork) return;
    this.isAskingWork = true;
    try {
      const { work } = await this.house.daemon.request("agent/state", { session_id: this.id, work: true });
      const message: ToContext = { type: "work", brief: work ? workInBrief(work) : "this daemon is too old to say", rows: work ? workRows(work) : [] };
      const said = JSON.stringify(message);
      if (said !== this.lastWork) this.send(message);
      this.lastWork = said;
    } catch (error) {
      this.house.daemon.log.debug(`the work of ${this.id}: ${words(error)}`);
    }
    this.isAskingWork = false;
    if (this.isWorkStale) void this.work();
  }

  private rows(): void {
    this.send({ type: "rows", rows: rowsOf(this.model.entries, this.plan?.result ?? null), plan: this.plan?.shown ?? null });
  }

  protected headOf(status: Status, title: string): ToContext {
    return {
      type: "head",
      head: {
        title,
        gauge: gauge(this.house.daemon.phase, status).text.replace(/\$\([^)]*\)\s*/g, ""),
        facts: hover(status),
        readOnly: status.held,
        canChange: !status.held && vscode.workspace.isTrusted,
        fraction: status.compacting?.fraction ?? null,
      },
    };
  }

  protected read(value: unknown): FromContext | null {
    return fromContext(value);
  }

  protected hear(event: AgentEvent): void {
    // A pin that another program set changes neither the epoch nor the size.
    const isElsewhere = event.type === "session_changed" && this.house.sessions.status(this.id)?.readOnly === true;
    if (isElsewhere) this.isAnother = true;
    if (isElsewhere || changesContext(event)) this.looking.ask();
  }

  protected returned(): void {
    this.looking.ask();
  }

  protected tell(problem: string): void {
    this.send({ type: "said", text: problem });
  }

  protected override ready(): void {
    this.pageMs = since(this.openedAt);
    if (this.sentAt > 0) this.sentAt = performance.now();
  }

  protected async handle(message: FromContext): Promise<void> {
    switch (message.type) {
      case "ready":
        return;
      case "drawn":
        this.house.daemon.log.info(
          `context: the first of ${this.house.sessions.status(this.id)?.messageCount ?? 0} entries in sight ${since(this.openedAt)} ms after opening; history took ${this.historyMs} ms, the page ${this.pageMs} ms, drawing ${since(this.sentAt)} ms`,
        );
        void this.work();
        return this.model.rest((more) => {
          // With a plan all of them are shown anew, and the rest with them.
          if (this.plan === null) this.send({ type: "more", rows: rowsOf(more) });
        });
      case "open":
        return this.entry(message.id);
      case "expand":
        return this.expand(message.id);
      case "plan":
        return this.preview(message.focus, message.keep);
      case "compact":
        await this.house.compactions.run(this.id, { focus: message.focus, keep: message.keep });
        return;
      case "pin":
        await this.house.compactions.pin(this.id, message.id, message.pinned);
        await this.model.refresh(true);
        this.rows();
        return this.entry(message.id);
      case "do":
        return this.deed(message.what);
    }
  }

  private async deed(what: Extract<FromContext, { type: "do" }>["what"]): Promise<void> {
    switch (what) {
      case "unplan":
        this.plan = null;
        this.rows();
        return;
      case "diff":
        if (this.plan === null) await this.house.compactions.diffLast(this.id);
        else {
          const context = this.model.entries;
          await this.house.compactions.diff(contextText(context), plannedText(context, this.plan.result), "Context now ↔ after the compaction");
        }
        return;
      case "cancel":
        this.house.compactions.cancel(this.id);
        return;
      case "undo":
      case "redo":
        await this.house.compactions[what](this.id);
        return;
      case "search":
        await vscode.commands.executeCommand("compactd.search", this.id);
        return;
      case "chat":
        await vscode.commands.executeCommand("compactd.openChat", this.id);
    }
  }

  private async entry(id: string): Promise<void> {
    const entry = this.model.entry(id);
    if (entry?.kind === "message" && entry.message === undefined) return;
    if (entry === undefined) {
      const { entries } = await this.house.daemon.request("session/expand", { session_id: this.id, entry_ids: [id] });
      const original = entries[0];
      if (original) this.send({ type: "entry", id, title: `${id} · ${roleOf(original.message)}${sizeOf(original.tokens)}`, text: wholeText(original.message), isPinned: false });
      return;
    }
    const size = sizeOf(entry.tokens);
    const done = entry.compaction;
    const title = done ? `Summary of ${plural(done.messages_removed, "message")}${size}` : `${id} · ${roleOf(entry.message)}${size}`;
    const note = entry.pruned_at ? "Pruned in the context; this is the original.\n\n" : "";
    this.send({ type: "entry", id, title, text: note + entryText(entry), isPinned: entry.pinned ?? false });
  }

  private async expand(id: string): Promise<void> {
    const compaction = this.model.entry(id)?.compaction?.compaction_id;
    if (!compaction) return;
    const { entries } = await this.house.daemon.request("session/expand", { session_id: this.id, compaction_id: compaction });
    this.send({ type: "behind", id, rows: originalRows(entries) });
  }

  private keepNow(): number {
    const keep = this.house.sessions.status(this.id)?.state?.budget["keep"]?.value;
    return typeof keep === "number" && keep > 0 ? Math.round(keep) : 20_000;
  }
}

function sizeOf(tokens: number | null | undefined): string {
  return tokens === undefined || tokens === null ? "" : ` · ${count(tokens)} tokens`;
}

/** Whole milliseconds since a moment of `performance.now`. */
function since(moment: number): number {
  return Math.round(performance.now() - moment);
}
