/** The sessions that are open in this window, and the one that the gauge shows. */

import * as vscode from "vscode";
import { Coalescer } from "./coalesce.ts";
import type { Daemon } from "./daemon.ts";
import { codeOf, locked, words } from "./errors.ts";
import { ErrorCode, type AgentEvent, type Requests, type SessionInfo, type StartParams, type StartResult } from "./protocol.ts";
import { after, hasGap, isTelling, started, withState, type Status } from "./status.ts";

const CURRENT = "compactd.current";
const FOLDERS = "compactd.folders";
/** Events become one change of what is shown at most that often: a frame of 60 a second and some. */
const SHOWN_MS = 50;
const ASKED_MS = 100;

/** What changes a session: its lock is taken before. */
const WRITES: ReadonlySet<keyof Requests> = new Set<keyof Requests>([
  "agent/prompt",
  "model/set",
  "prompt/drop",
  "session/append",
  "session/branch",
  "session/compact",
  "session/configure",
  "session/delete",
  "session/pin",
  "session/prune",
  "session/redact",
  "session/redo",
  "session/undo",
  "turn/begin",
  "turn/end",
  "turn/error",
]);

/** What this client calls itself. Other clients of a shared daemon show it. */
export const CLIENT = "compactd for VS Code";

/** A session of which events were missed; `isNew`: because a new daemon serves it. */
export interface Reread {
  readonly id: string;
  readonly isNew: boolean;
}

export class Sessions implements vscode.Disposable {
  private readonly open = new Map<string, Status>();
  private readonly opening = new Map<string, Promise<Status>>();
  private readonly stale = new Set<string>();
  private readonly changes = new vscode.EventEmitter<void>();
  private readonly heard = new vscode.EventEmitter<AgentEvent>();
  private readonly listed = new vscode.EventEmitter<void>();
  private readonly rereads = new vscode.EventEmitter<Reread>();
  /** What is shown of some session is another thing; at most twenty times a second. */
  readonly onChange = this.changes.event;
  /** Every event of an open session, in its order. */
  readonly onEvent = this.heard.event;
  /** What is shown of a session has to be read again. */
  readonly onReread = this.rereads.event;
  /** The list of sessions is another one. */
  readonly onList = this.listed.event;
  private readonly showing = new Coalescer(() => this.changes.fire(), SHOWN_MS);
  private readonly asking = new Coalescer(() => void this.refreshStale(), ASKED_MS);
  private readonly subscriptions: vscode.Disposable[];
  /** Those that were just opened: whether another program has them is not known yet. */
  private readonly fresh = new Set<string>();
  private readonly daemon: Daemon;
  private readonly memory: vscode.Memento;
  private shown: string | null = null;
  /** When the first session was there. */
  startedAt: number | null = null;

  constructor(daemon: Daemon, memory: vscode.Memento) {
    this.daemon = daemon;
    this.memory = memory;
    this.subscriptions = [
      daemon.onEvent((event) => this.hear(event)),
      daemon.onReturned(() => void this.reopen()),
      daemon.onPhase(() => this.showing.ask()),
    ];
  }

  /** The session that commands are about; null where none is open. */
  get current(): Status | null {
    return this.shown === null ? null : (this.open.get(this.shown) ?? null);
  }

  /** The session that was current when this workspace was open last. */
  get remembered(): string | null {
    return this.memory.get<string>(CURRENT) ?? null;
  }

  status(id: string): Status | null {
    return this.open.get(id) ?? null;
  }

  /** Makes a session current; it must be open. */
  select(id: string): void {
    if (this.shown !== id) {
      this.shown = id;
      void this.memory.update(CURRENT, id);
      void vscode.commands.executeCommand("setContext", "compactd.session", true);
    }
    this.changes.fire();
  }

  /** The folder that a session's tools work in, where this window started it. */
  folderOf(id: string): string | undefined {
    return this.memory.get<Record<string, string>>(FOLDERS, {})[id];
  }

  /** Remembers that folder. */
  worksIn(id: string, folder: string): void {
    void this.memory.update(FOLDERS, { ...this.memory.get<Record<string, string>>(FOLDERS, {}), [id]: folder });
  }

  /** Opens a session to look at it, without its lock, or gives back the one that is open. */
  async resume(id: string): Promise<Status> {
    const known = this.open.get(id);
    if (known !== undefined && this.daemon.phase.kind === "ready") return known;
    const before = this.opening.get(id);
    if (before !== undefined) return before;
    const work = this.start({ session_id: id, read_only: known?.readOnly ?? true }).finally(() => this.opening.delete(id));
    this.opening.set(id, work);
    return work;
  }

  /** `session/start`, with who we are. */
  async start(params: StartParams): Promise<Status> {
    const result = await this.ask(params);
    this.startedAt ??= performance.now();
    this.fresh.add(result.session_id);
    return this.took(started(result), result.warnings);
  }

  /** Asks the daemon about a session. What changes the session takes it for writing first: the only place that does. */
  async request<M extends keyof Requests>(method: M, params: Requests[M]["params"], token?: vscode.CancellationToken): Promise<Requests[M]["result"]> {
    const about = params as { readonly session_id?: string; readonly dry_run?: boolean | null };
    if (!WRITES.has(method) || about.dry_run || about.session_id === undefined) return this.daemon.request(method, params, token);
    await this.take(about.session_id);
    try {
      return await this.daemon.request(method, params, token);
    } catch (error) {
      throw codeOf(error) === ErrorCode.SessionLocked ? locked(error) : error;
    }
  }

  /**
   * Takes a session that is only looked at for writing. It stays read-only if another program has it: then the daemon
   * refuses the change itself, and says which program that is.
   */
  async take(id: string): Promise<void> {
    if (!this.open.get(id)?.readOnly) return;
    const result = await this.ask({ session_id: id });
    this.took({ ...started(result), held: result.read_only }, result.warnings);
  }

  /** What is stored, newest first. */
  async list(): Promise<SessionInfo[]> {
    return (await this.daemon.request("session/list", {})).sessions;
  }

  /** Forgets a session here. */
  dropped(id: string): void {
    this.open.delete(id);
    if (this.shown === id) {
      this.shown = null;
      void this.memory.update(CURRENT, undefined);
      void vscode.commands.executeCommand("setContext", "compactd.session", false);
    }
    this.listed.fire();
    this.changes.fire();
  }

  /** The list has to be asked for again. */
  relist(): void {
    this.listed.fire();
  }

  /** Asks the daemon where a session stands. */
  async refresh(id: string): Promise<void> {
    const state = await this.daemon.request("agent/state", { session_id: id });
    const before = this.open.get(id);
    if (before !== undefined) {
      const status = withState(before, state);
      this.open.set(id, status);
      if (this.fresh.delete(id) && status.held) {
        void vscode.window.showWarningMessage(
          "This session is open in another program: here it can only be read, and follows what is done there.",
        );
      }
    }
    this.showing.ask();
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
    for (const each of [this.changes, this.heard, this.listed, this.rereads, this.showing, this.asking]) each.dispose();
  }

  private ask(params: StartParams): Promise<StartResult> {
    return this.daemon.request("session/start", { ...params, client: { name: CLIENT, version: VERSION } });
  }

  private took(status: Status, warnings: readonly string[]): Status {
    this.open.set(status.id, status);
    // That it is only looked at is nothing to warn of.
    const level = status.readOnly ? "info" : "warn";
    for (const warning of warnings) this.daemon.log[level](`${status.id}: ${warning}`);
    this.listed.fire();
    this.changes.fire();
    // The gauge does not wait for it.
    this.stale.add(status.id);
    this.asking.ask();
    return status;
  }

  private hear(event: AgentEvent): void {
    const status = this.open.get(event.session_id);
    if (status === undefined) return;
    if (event.type === "session_closed") {
      this.dropped(event.session_id);
      this.heard.fire(event);
      return;
    }
    if (event.type === "events_dropped") void this.subscribe(event.session_id);
    const next = after(status, event);
    this.open.set(event.session_id, next);
    if (isTelling(event) || hasGap(status, event)) {
      this.stale.add(event.session_id);
      this.asking.ask();
    }
    if (event.type === "compaction_end" || event.type === "agent_end" || (next.readOnly && event.type === "message_appended")) this.listed.fire();
    this.heard.fire(event);
    this.showing.ask();
  }

  private async refreshStale(): Promise<void> {
    const ids = [...this.stale];
    this.stale.clear();
    for (const id of ids) {
      try {
        await this.refresh(id);
      } catch (error) {
        this.daemon.log.debug(`agent/state of ${id}: ${words(error)}`);
      }
    }
  }

  /** After more events came than this window read: what is stored is read again. */
  private async subscribe(id: string): Promise<void> {
    try {
      await this.daemon.request("session/subscribe", { session_id: id });
      await this.refresh(id);
      this.rereads.fire({ id, isNew: false });
    } catch (error) {
      this.daemon.log.error(`events of session ${id} are missing: ${words(error)}`);
    }
  }

  /** After the daemon died: its store has the sessions, each opened to look or to write as before. Told once, in the status line. */
  private async reopen(): Promise<void> {
    let lost = 0;
    for (const { id, readOnly } of [...this.open.values()]) {
      try {
        await this.start({ session_id: id, read_only: readOnly });
        this.rereads.fire({ id, isNew: true });
      } catch (error) {
        this.daemon.log.error(`session ${id} could not be opened again: ${words(error)}`);
        if (codeOf(error) === ErrorCode.SessionNotFound) this.dropped(id);
        lost += 1;
      }
    }
    const outcome = lost === 0 ? "its sessions are open again, nothing was lost" : `${lost} of its sessions could not be opened again: see the log`;
    vscode.window.setStatusBarMessage(`compactd was started again; ${outcome}`, 15_000);
    this.daemon.log.info(`started again; ${outcome}`);
  }
}

const VERSION = "0.1.0";
