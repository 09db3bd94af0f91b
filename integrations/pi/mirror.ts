// One pi session as a session of the daemon: messages are appended as they end, under pi's own entry ids, so that a
// daemon that died or an agent that was restarted goes on where it was.

import type { ExtensionContext, SessionEntry } from "@earendil-works/pi-coding-agent";
import { Daemon, DaemonError } from "./daemon.ts";
import { recordOf, sentOf, type Original, type Sent } from "./messages.ts";

/** The protocol this was written for; a daemon with another first number is not used. */
const PROTOCOL = 1;
/** Characters of one append: a long session comes in several, and no frame grows large. */
const MOST_BATCH = 4_000_000;
/** A daemon that ended as often is not started again. */
const MOST_STARTS = 5;

export interface Compaction {
  compacted: boolean;
  reason: string;
  compaction_id: string | null;
  strategy: string;
  summary: string;
  first_kept_entry_id: string | null;
  pinned_entry_ids: string[];
  messages_before: number;
  messages_after: number;
  messages_removed: number;
  tokens_before: number;
  tokens_after: number;
  read_files: string[];
  modified_files: string[];
  retention: { score: number; lost: string[] } | null;
  duration_ms: number;
}

export interface Options {
  command: string;
  /** Of a request, in milliseconds. */
  requestMs: number;
  /** Of a compaction with all that goes before it. */
  compactMs: number;
}

type Sessions = ExtensionContext["sessionManager"];

export class Mirror {
  readonly #options: Options;
  #daemon: Daemon | undefined;
  #ready: Promise<void> | undefined;
  #starts = 0;
  /** Why it did not start the last time. */
  #why: DaemonError | undefined;
  #queue: Promise<void> = Promise.resolve();
  /** pi's entry ids and the daemon's, null for an entry that says nothing. */
  #known = new Map<string, string | null>();
  #leaf: string | null = null;
  #session = "";
  #generation = 0;
  #window: number | undefined;
  #isClosed = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Takes in what is new, in the background: pi does not wait for it, and a failure shows when it is needed. */
  follow(ctx: ExtensionContext): void {
    void this.#enqueue(ctx).catch(() => undefined);
  }

  /** A request about the session, once the daemon has it whole. Rejects with `DaemonError` within `ms`. */
  async ask<T>(ctx: ExtensionContext, method: string, params: object, signal?: AbortSignal, ms?: number): Promise<T> {
    const until = Date.now() + (ms ?? this.#options.requestMs);
    await before(until, this.#enqueue(ctx), signal);
    const daemon = this.#daemon;
    if (!daemon) throw new DaemonError("the daemon ended");
    const left = Math.max(1, until - Date.now());
    return daemon.request<T>(method, { session_id: this.#session, ...params }, left, signal);
  }

  /** Our compaction of what pi is about to compact; `keptFrom` is pi's first entry that stays. */
  async compact(
    ctx: ExtensionContext,
    keptFrom: string,
    instructions: string | undefined,
    signal: AbortSignal,
  ): Promise<{ done: Compaction; keptFrom: string }> {
    const path = ctx.sessionManager.getBranch();
    const from = path.findIndex((entry) => entry.id === keptFrom);
    const keep = from < 0 ? 0 : path.slice(from).filter((entry) => sentOf(entry)).length;
    const params = { keep_messages: Math.max(1, keep), force: true, ...(instructions ? { instructions } : {}) };
    const done = await this.ask<Compaction>(ctx, "session/compact", params, signal, this.#options.compactMs);
    if (!done.compacted) throw new DaemonError(done.reason);
    const ours = path.find((entry) => {
      const known = this.#known.get(entry.id);
      return known != null && known === done.first_kept_entry_id;
    });
    const summary = done.summary + (await this.#pinned(done.pinned_entry_ids, signal));
    return { done: { ...done, summary }, keptFrom: ours?.id ?? keptFrom };
  }

  /** What the daemon keeps word for word beside its summary: pi has no other place for it. */
  async #pinned(ids: string[], signal: AbortSignal): Promise<string> {
    if (!ids.length) return "";
    const params = { session_id: this.#session, entry_ids: ids, quoted: true };
    const { entries } = await this.#daemon!.request<{ entries: Original[] }>(
      "session/expand",
      params,
      this.#options.requestMs,
      signal,
    );
    const texts = entries.map((each) => recordOf(each, Infinity));
    return `\n\n## Kept word for word\n${texts.join("\n\n")}`;
  }

  close(): void {
    this.#isClosed = true;
    this.#daemon?.close();
    this.#daemon = undefined;
    this.#ready = undefined;
  }

  // --- what is new ------------------------------------------------------------------------------------------------

  #enqueue(ctx: ExtensionContext): Promise<void> {
    const next = this.#queue.then(() => this.#catchUp(ctx));
    this.#queue = next.catch(() => undefined);
    return next;
  }

  async #catchUp(ctx: ExtensionContext): Promise<void> {
    await this.#start(ctx);
    const sessions = ctx.sessionManager;
    const window = ctx.model?.contextWindow;
    if (window && window !== this.#window) {
      const params = { session_id: this.#session, compaction: { context_window: window } };
      await this.#daemon?.request("session/configure", params, this.#options.requestMs);
      this.#window = window;
    }
    let { fresh, anchor } = this.#fresh(sessions);
    if (anchor !== this.#leaf) {
      await this.#goTo(ctx, anchor);
      ({ fresh } = this.#fresh(sessions));
    }
    let batch: { entry: SessionEntry; sent: Sent }[] = [];
    let size = 0;
    for (const entry of fresh) {
      const sent = sentOf(entry);
      if (!sent) {
        this.#known.set(entry.id, null);
        continue;
      }
      batch.push({ entry, sent });
      size += lengthOf(sent);
      if (size > MOST_BATCH) {
        await this.#append(batch);
        [batch, size] = [[], 0];
      }
    }
    await this.#append(batch);
    this.#leaf = fresh.at(-1)?.id ?? this.#leaf;
  }

  /** The entries that the daemon does not have, oldest first, and the one they follow. */
  #fresh(sessions: Sessions): { fresh: SessionEntry[]; anchor: string | null } {
    const fresh: SessionEntry[] = [];
    let id = sessions.getLeafId();
    while (id !== null && !this.#known.has(id)) {
      const entry = sessions.getEntry(id);
      if (!entry) break;
      fresh.push(entry);
      id = entry.parentId;
    }
    return { fresh: fresh.reverse(), anchor: id };
  }

  async #append(batch: { entry: SessionEntry; sent: Sent }[]): Promise<void> {
    const daemon = this.#daemon;
    if (!daemon || !batch.length) return;
    const params = { session_id: this.#session, messages: batch.map((each) => each.sent) };
    const { entry_ids } = await daemon.request<{ entry_ids: string[] }>(
      "session/append",
      params,
      this.#options.requestMs,
    );
    batch.forEach(({ entry }, at) => this.#known.set(entry.id, entry_ids[at] ?? null));
  }

  /** pi went to another place of its tree. */
  async #goTo(ctx: ExtensionContext, anchor: string | null): Promise<void> {
    let at = anchor;
    while (at !== null && this.#known.get(at) == null) at = ctx.sessionManager.getEntry(at)?.parentId ?? null;
    const entry = at === null ? undefined : this.#known.get(at);
    if (entry) {
      const params = { session_id: this.#session, entry_id: entry };
      await this.#daemon?.request("session/branch", params, this.#options.requestMs);
      this.#leaf = anchor;
    } else if (this.#leaf !== null) {
      // Back before the first message: another conversation.
      this.#generation += 1;
      await this.#open(ctx);
    }
  }

  // --- the daemon -------------------------------------------------------------------------------------------------

  async #start(ctx: ExtensionContext): Promise<void> {
    if (this.#isClosed) throw new DaemonError("the session is over");
    if (this.#daemon && !this.#daemon.isAlive) this.#ready = undefined;
    if (!this.#ready) {
      if (this.#starts >= MOST_STARTS) throw this.#why ?? new DaemonError(`the daemon ended ${MOST_STARTS} times`);
      this.#starts += 1;
      this.#ready = this.#spawned(ctx);
      this.#ready.catch((error: DaemonError) => {
        this.#why = error;
        this.#ready = undefined;
        this.#daemon?.close();
      });
    }
    await this.#ready;
  }

  async #spawned(ctx: ExtensionContext): Promise<void> {
    this.#daemon?.close();
    const daemon = new Daemon(this.#options.command, ctx.cwd);
    this.#daemon = daemon;
    const info = await daemon.request<{ protocol_version: string }>("daemon/info", {}, this.#options.requestMs);
    if (Number.parseInt(info.protocol_version, 10) !== PROTOCOL) {
      throw new DaemonError(`the daemon speaks protocol ${info.protocol_version}, this extension ${PROTOCOL}.x`);
    }
    await this.#open(ctx);
  }

  async #open(ctx: ExtensionContext): Promise<void> {
    const model = ctx.model;
    const wanted = `pi:${ctx.sessionManager.getSessionId()}${this.#generation ? `:${this.#generation}` : ""}`;
    const about = {
      ...(model ? { model: { id: model.id, provider: model.provider } } : {}),
      system_prompt: ctx.getSystemPrompt(),
      working_dir: ctx.cwd,
      durability: "os",
      client: { name: "pi", version: "1" },
    };
    const open = (more: object) =>
      this.#daemon!.request<{ session_id: string; read_only: boolean }>(
        "session/start",
        { ...about, ...more },
        this.#options.requestMs,
      );
    let opened = await open({ session_id: wanted });
    // Another pi has this session open: a copy in memory serves this one.
    if (opened.read_only) opened = await open({ persist: false });
    this.#session = opened.session_id;
    this.#known = new Map();
    this.#leaf = null;
    this.#window = undefined;
  }
}

/** `work`'s result, unless `until` or `signal` comes first. */
function before<T>(until: number, work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const stop = () => reject(new DaemonError("cancelled"));
    const late = () => reject(new DaemonError("the daemon did not take the session in within the deadline"));
    const timer = setTimeout(late, Math.max(1, until - Date.now()));
    signal?.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    });
  });
}

function lengthOf(sent: Sent): number {
  return typeof sent.content === "string" ? sent.content.length : JSON.stringify(sent.content).length;
}
