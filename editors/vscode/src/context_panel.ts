/** The context of a session as a page: entries with sizes, summaries that open, a compaction's preview. */

import * as vscode from "vscode";
import { Coalescer } from "./coalesce.ts";
import type { Compactions } from "./compactions.ts";
import { ContextModel } from "./context_model.ts";
import type { Daemon } from "./daemon.ts";
import { wasCancelled, words } from "./errors.ts";
import { gauge, hover } from "./gauge.ts";
import { fromContext, type FromContext, type Plan, type ToContext } from "./messages.ts";
import { fill, pageOptions } from "./page.ts";
import { count, oneLine, plural } from "./plain.ts";
import type { CompactionResult } from "./protocol.ts";
import { contextText, entryText, inWords, originalRows, plannedText, rowsOf, type Row } from "./rows.ts";
import { roleOf, wholeText } from "./said.ts";
import type { Sessions } from "./sessions.ts";
import { changesContext } from "./status.ts";

/** What the panels share. */
export interface House {
  readonly extension: vscode.Uri;
  readonly daemon: Daemon;
  readonly sessions: Sessions;
  readonly compactions: Compactions;
  titleOf(id: string): Promise<string>;
}

const LOOK_MS = 120;
const FIRST_ROWS = 200;

export class ContextPanel implements vscode.Disposable {
  private readonly panel: vscode.WebviewPanel;
  private readonly model: ContextModel;
  private readonly looking = new Coalescer(() => void this.look(), LOOK_MS);
  private readonly subscriptions: vscode.Disposable[];
  private plan: { result: CompactionResult; shown: Plan } | null = null;
  private isReady = false;
  private waiting: ToContext[] = [];
  private title = "";
  private lastHead = "";
  private readonly openedAt = performance.now();
  private sentAt = 0;
  private historyMs = 0;
  /** Rows that wait until the first are drawn. */
  private rest: Row[] = [];
  private pageMs = 0;
  private readonly house: House;
  readonly id: string;

  constructor(house: House, id: string, column: vscode.ViewColumn, closed: () => void) {
    this.house = house;
    this.id = id;
    this.model = new ContextModel(house.daemon, house.sessions, id);
    this.panel = vscode.window.createWebviewPanel("compactd.context", "Context", column, {
      ...pageOptions(house.extension),
      retainContextWhenHidden: true,
      enableFindWidget: true,
    });
    this.panel.iconPath = vscode.Uri.joinPath(house.extension, "media", "icon.svg");
    this.subscriptions = [
      this.panel.webview.onDidReceiveMessage((value: unknown) => this.take(value)),
      house.sessions.onChange(() => this.head()),
      house.sessions.onEvent((event) => {
        if (event.session_id === id && changesContext(event)) this.looking.ask();
      }),
      house.daemon.onReturned(() => this.looking.ask()),
    ];
    this.panel.onDidDispose(() => {
      this.dispose();
      closed();
    });
    fill(this.panel.webview, house.extension, "context", "Context");
    void this.first();
  }

  get isActive(): boolean {
    return this.panel.active;
  }

  reveal(): void {
    this.panel.reveal(undefined, false);
  }

  /** Shows an entry, wherever it is. */
  async show(entry: string): Promise<void> {
    await this.model.refresh();
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

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
    this.looking.dispose();
    this.panel.dispose();
  }

  private async first(): Promise<void> {
    try {
      const [title] = await Promise.all([this.house.titleOf(this.id), this.model.refresh(true)]);
      this.title = title;
      this.historyMs = since(this.openedAt);
      this.panel.title = `Context: ${oneLine(title, 40)}`;
      this.head();
      this.sentAt = performance.now();
      this.firstRows();
    } catch (error) {
      this.failed(error);
    }
  }

  private async look(): Promise<void> {
    try {
      const change = await this.model.refresh();
      if (change.kind === "none") return;
      if (change.kind === "all") this.plan = null;
      if (change.kind === "more" && this.plan === null && this.rest.length === 0) this.send({ type: "more", rows: rowsOf(change.entries) });
      else this.rows();
    } catch (error) {
      this.house.daemon.log.debug(`context of ${this.id}: ${words(error)}`);
    }
  }

  private rows(): void {
    this.rest = [];
    this.send({ type: "rows", rows: rowsOf(this.model.entries, this.plan?.result ?? null), plan: this.plan?.shown ?? null });
  }

  /** The first rows at once, for they are what is looked at; the others when those are drawn. */
  private firstRows(): void {
    const rows = rowsOf(this.model.entries);
    this.send({ type: "rows", rows: rows.slice(0, FIRST_ROWS), plan: null });
    this.rest = rows.slice(FIRST_ROWS);
  }

  private head(): void {
    const status = this.house.sessions.status(this.id);
    if (status === null) return;
    const shown = gauge(this.house.daemon.phase, status);
    const message = {
      type: "head" as const,
      head: {
        title: oneLine(this.title, 120),
        gauge: shown.text.replace(/\$\([^)]*\)\s*/g, ""),
        facts: hover(status),
        readOnly: status.readOnly,
        canChange: !status.readOnly && vscode.workspace.isTrusted,
        fraction: status.compacting?.fraction ?? null,
      },
    };
    const said = JSON.stringify(message.head);
    if (said === this.lastHead) return;
    this.lastHead = said;
    this.send(message);
  }

  private take(value: unknown): void {
    const message = fromContext(value);
    if (message === null) {
      this.house.daemon.log.warn("a message that no page of ours sends was dropped");
      return;
    }
    this.handle(message).catch((error: unknown) => this.failed(error));
  }

  private async handle(message: FromContext): Promise<void> {
    switch (message.type) {
      case "ready":
        this.isReady = true;
        this.pageMs = since(this.openedAt);
        if (this.sentAt > 0) this.sentAt = performance.now();
        for (const each of this.waiting.splice(0)) void this.panel.webview.postMessage(each);
        return;
      case "drawn":
        this.house.daemon.log.info(
          `context: the first of ${this.model.context.length} entries in sight ${since(this.openedAt)} ms after opening; history took ${this.historyMs} ms, the page ${this.pageMs} ms, drawing ${since(this.sentAt)} ms`,
        );
        if (this.rest.length > 0) this.send({ type: "more", rows: this.rest.splice(0) });
        return;
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
        if (this.plan === null) await this.house.compactions.diffLast(this.id, this.model.entries);
        else {
          const context = this.model.context;
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
      if (original) this.send({ type: "entry", id, title: `${id} · ${roleOf(original.message)}`, text: wholeText(original.message), isPinned: false });
      return;
    }
    const size = entry.tokens === undefined || entry.tokens === null ? "" : ` · ${count(entry.tokens)} tokens`;
    const done = entry.compaction;
    const title = done ? `Summary of ${plural(done.messages_removed, "message")}${size}` : `${id} · ${roleOf(entry.message)}${size}`;
    const note = entry.pruned_at ? "Pruned in the context; this is the original.\n\n" : "";
    this.send({ type: "entry", id, title, text: note + entryText(entry), isPinned: entry.pinned ?? false });
  }

  private async expand(id: string): Promise<void> {
    const compaction = this.model.entry(id)?.compaction?.compaction_id;
    if (!compaction) return;
    const { entries } = await this.house.daemon.request("session/expand", { session_id: this.id, compaction_id: compaction });
    const sizes = new Map(this.model.entries.map((entry) => [entry.entry_id, entry.tokens ?? null]));
    const rows = originalRows(entries).map((row) => ({ ...row, tokens: sizes.get(row.id) ?? null }));
    this.send({ type: "behind", id, rows });
  }

  private keepNow(): number {
    const keep = this.house.sessions.status(this.id)?.state?.budget["keep"]?.value;
    return typeof keep === "number" && keep > 0 ? Math.round(keep) : 20_000;
  }

  private failed(error: unknown): void {
    if (wasCancelled(error)) return;
    this.house.daemon.log.error(words(error));
    this.send({ type: "said", text: words(error) });
  }

  /** Tells the page; what comes before it is ready waits. */
  private send(message: ToContext): void {
    if (this.isReady) void this.panel.webview.postMessage(message);
    else this.waiting.push(message);
  }
}

/** Whole milliseconds since a moment of `performance.now`. */
function since(moment: number): number {
  return Math.round(performance.now() - moment);
}
