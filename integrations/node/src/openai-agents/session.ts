// A session of the SDK that stores the conversation, and keeps each model request of a run within the window.

import { randomUUID } from "node:crypto";
import {
  applySessionHistoryMutations,
  MemorySession,
  Runner,
  UserError,
  type Agent,
  type RunConfig,
  type Session,
  type SessionHistoryRewriteArgs,
  type SessionHistoryTransactionArgs,
} from "@openai/agents";
import type { SessionOptions } from "../engine.js";
import type { SessionState } from "../mirror.js";
import { question } from "../recall.js";
import { conversationOf, current, type Conversation } from "./conversation.js";
import type { Item } from "./items.js";
import { modelFor, providerFor } from "./model.js";
import { ItemStore } from "./store.js";

/** Options of a `CompactdSession`. */
export interface CompactdSessionOptions extends SessionOptions {
  /** The folder of the items. Left out: `openai-agents` in compactd's data folder. */
  folder?: string | undefined;
  /** Another session that stores the items. */
  underlyingSession?: Session | undefined;
}

type Run = Runner["run"];

/** A conversation. It stores all items unchanged; requests contain what fits the window. */
export class CompactdSession implements Session {
  readonly sessionId: string;
  readonly #options: CompactdSessionOptions;
  readonly #store: ItemStore | undefined;
  readonly #underlying: Session | undefined;
  readonly #runners = new WeakMap<object, Runner>();

  /** `sessionId`: left out for a new conversation. */
  constructor(sessionId: string = randomUUID(), options: CompactdSessionOptions = {}) {
    this.sessionId = sessionId;
    this.#options = options;
    this.#underlying = options.underlyingSession;
    const { persist = true } = options;
    this.#store = this.#underlying || !persist ? undefined : new ItemStore(sessionId, options.folder);
    if (!this.#underlying && !persist) this.#underlying = new MemorySession({ sessionId });
    this.#conversation().engine.startSoon();
  }

  /** Run an agent in this conversation: `run` of the SDK, with requests that fit the window. */
  readonly run: Run = ((agent: Agent<unknown, "text">, input: string, options: object = {}) =>
    current.run(this.#conversation(), () => this.#runner(DEFAULTS).run(agent, input, { ...options, session: this }))) as Run;

  /** Return settings for `new Runner(…)`, whose runs then keep the requests of this session within the window. `base`:
   * your own settings, which all stay. */
  runConfig(base: Partial<RunConfig> = {}): Partial<RunConfig> {
    const target = { sessionId: this.sessionId, options: this.#options };
    return {
      ...base,
      modelProvider: providerFor(base.modelProvider, target),
      ...(typeof base.model === "object" ? { model: modelFor(base.model, target) } : {}),
    };
  }

  // --- the SDK's interface --------------------------------------------------------------------------------------

  getSessionId(): Promise<string> {
    return Promise.resolve(this.sessionId);
  }

  /** Return the newest `limit` items, or all. */
  async getItems(limit?: number): Promise<Item[]> {
    if (this.#underlying) return this.#underlying.getItems(limit);
    const items = (await this.#store?.read()) ?? [];
    return limit === undefined ? items : limit <= 0 ? [] : items.slice(-limit);
  }

  /** Store items. They are on disk when this returns. */
  async addItems(items: Item[]): Promise<void> {
    if (!items.length) return;
    if (this.#store) await this.#store.change({ add: items });
    else await this.#underlying?.addItems(items);
    this.#recordSoon();
  }

  /** Remove the newest item, and return it. The daemon's journal keeps it on an old branch. */
  async popItem(): Promise<Item | undefined> {
    const popped = this.#store ? (await this.#store.change({ pop: true })).popped : await this.#underlying?.popItem();
    this.#recordSoon();
    return popped;
  }

  /** Remove all items, and delete the daemon's session with its journal. */
  async clearSession(): Promise<void> {
    if (this.#store) await this.#store.delete();
    else await this.#underlying?.clearSession();
    await this.#conversation().clear();
  }

  /** Put other items in the place of all, as the SDK asks for. The daemon's journal keeps the old ones. */
  async replaceHistoryWithCompaction(items: Item[]): Promise<void> {
    if (this.#store) {
      await this.#store.change({ items });
    } else if (this.#underlying?.replaceHistoryWithCompaction) {
      await this.#underlying.replaceHistoryWithCompaction(items);
    } else {
      await this.#underlying?.clearSession();
      await this.#underlying?.addItems(items);
    }
    this.#recordSoon();
  }

  /** Change stored items, as the SDK asks for. */
  async applyHistoryMutations(args: SessionHistoryRewriteArgs): Promise<void> {
    if (!args.mutations.length) return;
    const before = await this.getItems();
    const after = applySessionHistoryMutations(before, args.mutations);
    if (this.#store) await this.#changed({ expected: before, replacement: after });
    else await this.replaceHistoryWithCompaction(after);
    this.#recordSoon();
  }

  /** Make a change at most once, as the SDK asks for. */
  async applyHistoryTransaction({ operationId, transaction }: SessionHistoryTransactionArgs): Promise<void> {
    if (!operationId) throw new UserError("A session history transaction needs an operationId.");
    if (this.#store) {
      const change =
        transaction.type === "append_items"
          ? { add: transaction.items }
          : { expected: transaction.expectedSuffix, replacement: transaction.replacement };
      await this.#changed(change, operationId);
    } else {
      const other = this.#underlying as Partial<CompactdSession> | undefined;
      if (!other?.applyHistoryTransaction) throw new UserError("The underlying session has no transactions.");
      await other.applyHistoryTransaction({ operationId, transaction });
    }
    this.#recordSoon();
  }

  // --- what compactd adds ---------------------------------------------------------------------------------------

  /** Return how full the context is, what was billed, and the compactions. Rejects if the daemon fails. */
  async state(): Promise<SessionState> {
    return (await this.#conversation().settled()).state();
  }

  /** Undo the last compaction: the next request has the items again. Rejects with `RpcError` if there is none, or if they
   * would not fit the window. With `force`, they are there, and the next request may compact again. */
  async undo({ force = false }: { force?: boolean } = {}): Promise<void> {
    await (await this.#conversation().settled()).undo(force);
  }

  /** Return what was said earlier, as the tool `recall` would. `start`: the line at which the first of `entryIds` begins
   * to be shown. */
  async recall(query: string, entryIds: readonly string[] = [], start = 0): Promise<string> {
    return (await this.#conversation().settled()).recall(question({ query, entry_ids: entryIds, start }));
  }

  #conversation(): Conversation {
    return conversationOf(this.sessionId, this.#options);
  }

  #recordSoon(): void {
    this.#conversation().recordSoon(() => this.getItems());
  }

  #runner(base: Partial<RunConfig>): Runner {
    let runner = this.#runners.get(base);
    if (!runner) this.#runners.set(base, (runner = new Runner(this.runConfig(base))));
    return runner;
  }

  async #changed(change: { add: Item[] } | { expected: Item[]; replacement: Item[] }, op?: string): Promise<void> {
    const outcome = await this.#store?.change(change, op);
    if (outcome?.differs) throw new UserError("The operation was already applied with another transaction.");
    if (outcome?.mismatch) throw new UserError("The session's items do not end as the transaction expects.");
  }
}

const DEFAULTS: Partial<RunConfig> = {};
