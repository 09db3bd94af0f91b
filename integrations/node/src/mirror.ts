// A session of the daemon that follows a conversation which a framework holds.
//
// Before each model request, the framework's adapter gives the whole history. What is new is appended. If older
// messages were changed or removed, the session goes back to the last message that is still the same, and continues
// from there on a new branch; the old branch stays in the journal.

import { RpcError, type Daemon } from "./daemon.js";
import { CALL_MS, COMPACT_MS, validId, type Engine, type Opening } from "./engine.js";
import {
  commonLength,
  isSame,
  messageId,
  sendable,
  type Block,
  type History,
  type Setup,
  type ShownMessage,
  type View,
} from "./history.js";
import { recall, UNREACHABLE, type Question } from "./recall.js";

/** Characters of messages in one request. A long history comes in several. */
const MAX_BATCH = 4_000_000;
/** Characters per token of a message as JSON, at most: English has about 4, with the JSON around it. */
const MAX_TOKEN_CHARS = 5;
const SESSION_NOT_FOUND = 1001;
const CANNOT_FIT = 1008;

interface Encoded {
  id: string;
  /** The message as JSON, without its id. */
  body: string;
  role: string;
  usage: object | undefined;
}

interface Started {
  session_id: string;
  resumed: boolean;
  read_only: boolean;
  warnings?: string[];
}

interface Begun {
  compaction?: { compacted: boolean } | null;
  token_usage: { epoch: number; current_context_tokens?: number | null; threshold_tokens?: number | null };
  max_output_tokens?: number;
}

/** A failed model request, as `turn/error` takes it. */
export interface RequestError {
  status?: number | undefined;
  code?: string | number | undefined;
  message?: string | undefined;
  body?: unknown;
}

/** What the daemon did about a failed request. */
export interface Failure {
  retry: boolean;
  max_output_tokens?: number;
}

/** A compaction that somebody asks for. */
export interface Wish {
  /** The most tokens of the whole next request. Undefined: as the session's settings say. */
  targetTokens?: number | undefined;
  /** What the summary should pay special attention to. */
  instructions?: string | undefined;
  /** True: compact even if no cut point is valid. */
  force?: boolean;
}

/** What such a compaction did. */
export interface Compacted {
  compacted: boolean;
  /** Why nothing was compacted, or what was done differently. */
  reason: string;
  summary: string;
  tokens_before: number;
  tokens_after: number;
}

/** A tool's output with its call. */
export interface ToolOutput {
  name: string;
  arguments: object;
  content: string;
  callId?: string | undefined;
  /** Undefined: as the session's settings say. */
  level?: string | undefined;
  /** True: change nothing, and count what would be saved. */
  observe?: boolean;
}

/** The result of `agent/state`, as far as users ask for it here. The protocol describes it in full. */
export interface SessionState {
  session_id: string;
  model: string | null;
  message_count: number;
  token_usage: {
    current_context_tokens: number | null;
    context_window: number | null;
    input_tokens?: number;
    output_tokens?: number;
  };
  compaction: { count: number; tokens_saved: number };
  [field: string]: unknown;
}

/** What is known of the session that is open. */
interface Open {
  daemon: Daemon;
  id: string;
  setup: Setup;
  options: Opening;
  /** The daemon's entries, by our message ids. */
  entries: Map<string, string>;
  /** The id of the last message of the session's branch. */
  leaf: string | undefined;
}

/** The session of one conversation. Its requests are sent one after the other: several agents may use one
 * conversation, and each gets the view of its own history.
 *
 * Methods whose result may be undefined could then not reach the daemon; there was a warning. */
export class Mirror<Part> {
  readonly name: string;
  readonly #engine: Engine;
  #options: Opening;
  #queue: Promise<unknown> = Promise.resolve();
  #open: Open | undefined;
  #parts: readonly Part[] = [];
  #ids: string[] = [];
  #isBegun = false;
  /** The answer to the `turn/begin` that was sent with the last new messages. */
  #begun: Promise<Begun> | undefined;
  #hasPendingCalls = false;
  #epoch = -1;
  #items: (number | ShownMessage)[] | undefined;
  #itemsCover = 0;

  /** `name`: the session's id. Nothing is opened yet. */
  constructor(engine: Engine, name: string, options: Opening) {
    this.name = name;
    this.#engine = engine;
    this.#options = options;
  }

  /** Use other options from the next request on. */
  adopt(options: Opening): void {
    this.#options = options;
  }

  /** Append what is new, compact if that is due, and return what the next request shall contain. Compares the messages;
   * everything else depends on what is new, unless the view changed. */
  prepare(history: History<Part>, setup: Setup): Promise<View | undefined> {
    return this.#attempt((daemon) => this.#prepare(daemon, history, setup));
  }

  /** Append what is new. For the end of a run: the answer is then in the session. */
  record(history: History<Part>): Promise<true | undefined> {
    return this.#attempt(async (daemon) => {
      await this.#sync(daemon, history, this.#open?.setup ?? {});
      return true as const;
    });
  }

  /** Report a failed request. If the result has `retry`, call `prepare` and send the request again. */
  failed(error: RequestError): Promise<Failure | undefined> {
    return this.#attempt(async (daemon) => {
      const { id } = await this.#opened(daemon);
      return daemon.request<Failure>("turn/error", { session_id: id, error }, COMPACT_MS);
    });
  }

  /** Compact the conversation now, as far as the session has it. A target that is too small changes nothing. */
  compact({ targetTokens, instructions, force }: Wish): Promise<Compacted | undefined> {
    return this.#attempt(async (daemon) => {
      const { id } = await this.#opened(daemon);
      const params = { session_id: id, target_tokens: targetTokens, instructions, force };
      try {
        return await daemon.request<Compacted>("session/compact", params, COMPACT_MS);
      } catch (error) {
        if (!(error instanceof RpcError) || error.code !== CANNOT_FIT) throw error;
        return { compacted: false, reason: error.message, summary: "", tokens_before: 0, tokens_after: 0 };
      }
    });
  }

  /** Return a shorter text for a tool's output, as `session/reduce` does. */
  reduce(output: ToolOutput): Promise<string | undefined> {
    return this.#attempt(async (daemon) => {
      const { callId, ...rest } = output;
      const params = { session_id: (await this.#opened(daemon)).id, call_id: callId, ...rest };
      return (await daemon.request<{ content: string }>("session/reduce", params, CALL_MS)).content;
    });
  }

  /** Return what was said earlier, as a text for the model. */
  async recall(question: Question): Promise<string> {
    const text = await this.#attempt(async (daemon) => recall(daemon, (await this.#opened(daemon)).id, question));
    return text ?? UNREACHABLE;
  }

  /** Return how full the context is, what was billed, and the compactions. Rejects if the daemon fails. */
  state(): Promise<SessionState> {
    return this.#demand(async (daemon) =>
      daemon.request<SessionState>("agent/state", { session_id: (await this.#opened(daemon)).id }, CALL_MS),
    );
  }

  /** Undo the last compaction: the next request has the messages again. Rejects with `RpcError` if there is none, or if
   * the messages would not fit the window. `force` undoes it anyway; the next request then compacts again. */
  undo(force = false): Promise<void> {
    return this.#demand(async (daemon) => {
      const params = { session_id: (await this.#opened(daemon)).id, force };
      await daemon.request("session/undo", params, CALL_MS);
    });
  }

  /** Close the session at the daemon. It is opened again when it is needed. */
  async close(): Promise<void> {
    const open = this.#open;
    this.#forget();
    if (open?.daemon.isAlive) {
      await open.daemon.request("session/close", { session_id: open.id }, CALL_MS).catch(() => undefined);
    }
  }

  /** Delete the session and its journal. Later calls begin a new one. */
  async delete(): Promise<void> {
    await this.#attempt(async (daemon) => {
      const names = new Set([this.name, this.#open?.id ?? this.name]);
      this.#forget();
      for (const session_id of names) {
        await daemon.request("session/delete", { session_id }, CALL_MS).catch((error: unknown) => {
          if (!(error instanceof RpcError) || error.code !== SESSION_NOT_FOUND) throw error;
        });
      }
    });
  }

  // --- the session ----------------------------------------------------------------------------------------------

  #attempt<T>(work: (daemon: Daemon) => Promise<T>): Promise<T | undefined> {
    return this.#inTurn(() => this.#engine.attempt((daemon) => this.#tried(daemon, work), this.#options.tested));
  }

  #demand<T>(work: (daemon: Daemon) => Promise<T>): Promise<T> {
    return this.#inTurn(() => this.#engine.demand((daemon) => this.#tried(daemon, work)));
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }

  /** Do `work`. If the daemon has lost the session, open it again and do the work once more. */
  async #tried<T>(daemon: Daemon, work: (daemon: Daemon) => Promise<T>): Promise<T> {
    // Another daemon has nothing of what this one was given.
    if (this.#open && this.#open.daemon !== daemon) this.#forget();
    try {
      return await work(daemon);
    } catch (error) {
      // What the daemon has is not known any more.
      this.#forget();
      if (!(error instanceof RpcError) || error.code !== SESSION_NOT_FOUND) throw error;
      return work(daemon);
    }
  }

  #forget(): void {
    this.#open = undefined;
    this.#parts = [];
    this.#ids = [];
    this.#isBegun = this.#hasPendingCalls = false;
    this.#begun = undefined;
    this.#epoch = -1;
    this.#items = undefined;
    this.#itemsCover = 0;
  }

  async #opened(daemon: Daemon, setup: Setup = {}): Promise<Open> {
    return this.#open ?? this.#openSession(daemon, this.name, setup);
  }

  async #openSession(daemon: Daemon, sessionId: string, setup: Setup): Promise<Open> {
    const options = this.#options;
    const about = {
      context_window: options.contextWindow,
      system_prompt: setup.systemPrompt || undefined,
      tools: setup.tools?.length ? setup.tools : undefined,
      model: options.model ?? setup.model,
      working_dir: options.workingDir ?? process.cwd(),
      compaction: options.compaction,
      durability: "os",
      parent_session_id: options.parentSessionId === undefined ? undefined : validId(options.parentSessionId),
      client: { name: options.client, version: "1" },
    };
    const start = (more: object) => daemon.request<Started>("session/start", { ...about, ...more }, CALL_MS);
    let started = await start({ session_id: sessionId, persist: options.persist ?? true });
    if (started.read_only) {
      // Another process has the session. A copy in memory serves this one.
      await daemon.request("session/close", { session_id: sessionId }, CALL_MS);
      started = await start({ persist: false });
    }
    for (const warning of started.warnings ?? []) {
      if (warning.includes("compaction.")) this.#engine.warn(warning, `compactd: ${warning}.`);
    }
    this.#forget();
    const open: Open = { daemon, id: started.session_id, setup, options, entries: new Map(), leaf: undefined };
    this.#open = open;
    if (started.resumed) await readEntries(open);
    return open;
  }

  /** Give the session what changed of `setup` and of the options. */
  async #configure(open: Open, setup: Setup): Promise<void> {
    const [old, options, before] = [open.setup, this.#options, open.options];
    const given: Record<string, unknown> = {};
    const model = options.model ?? setup.model;
    if (model !== undefined && model !== (before.model ?? old.model)) given.model = model;
    const window = options.contextWindow;
    if (window !== undefined && (window !== before.contextWindow || "model" in given)) given.context_window = window;
    if ((setup.systemPrompt ?? "") !== (old.systemPrompt ?? "")) given.system_prompt = setup.systemPrompt ?? "";
    if (!isSame(setup.tools ?? [], old.tools ?? [])) given.tools = setup.tools ?? [];
    if (options.compaction && !isSame(options.compaction, before.compaction)) given.compaction = options.compaction;
    if (Object.keys(given).length) {
      await open.daemon.request("session/start", { session_id: open.id, persist: before.persist ?? true, ...given }, CALL_MS);
    }
    open.setup = setup;
    open.options = options;
  }

  // --- the history ----------------------------------------------------------------------------------------------

  /** Make the session's branch say what `history` says. `begins`: send `turn/begin` with the last new messages. */
  async #sync(daemon: Daemon, history: History<Part>, setup: Setup, begins = false): Promise<void> {
    this.#begun = undefined;
    await this.#configure(await this.#opened(daemon, setup), setup);
    const same = commonLength(this.#parts, history.parts);
    if (same === history.parts.length && same === this.#parts.length) return;
    const added: Encoded[] = [];
    let before = same ? (this.#ids[same - 1] ?? "") : "";
    for (let index = same; index < history.parts.length; index++) {
      const { usage, ...neutral } = history.encode(index);
      const body = sendable(neutral);
      before = messageId(before, body);
      added.push({ id: before, body, role: neutral.role, usage });
    }
    const ids = [...this.#ids.slice(0, same), ...added.map((each) => each.id)];
    const [first] = ids;
    if (first !== undefined) {
      const open = await this.#chooseSession(daemon, first, setup);
      const stored = countStored(open, ids);
      if (stored === 0) keepBelievableUsages(added);
      // What follows on another branch was billed there.
      else if (open.leaf !== ids[stored - 1]) for (const each of added) each.usage = undefined;
      await this.#goTo(open, ids, stored);
      await this.#append(open, added.slice(Math.max(0, stored - same)), begins);
    }
    // A copy: the framework may change its list.
    this.#parts = [...history.parts];
    this.#ids = ids;
  }

  /** Have a session open that is empty or begins with the message `firstId`. */
  async #chooseSession(daemon: Daemon, firstId: string, setup: Setup): Promise<Open> {
    let open = await this.#opened(daemon, setup);
    for (const name of [this.name, `${this.name}:${firstId.slice(0, 8)}`]) {
      if (!open.entries.size || open.entries.has(firstId)) break;
      if (name === open.id) continue;
      await daemon.request("session/close", { session_id: open.id }, CALL_MS);
      open = await this.#openSession(daemon, name, setup);
    }
    return open;
  }

  /** Go back to the last of `ids` that the session has, unless it is there already. */
  async #goTo(open: Open, ids: readonly string[], stored: number): Promise<void> {
    const last = ids[stored - 1];
    if (last === undefined || open.leaf === last) return;
    const params = { session_id: open.id, entry_id: open.entries.get(last) };
    await open.daemon.request("session/branch", params, CALL_MS);
    open.leaf = last;
    this.#items = undefined;
    this.#isBegun = this.#hasPendingCalls = false;
  }

  async #append(open: Open, added: readonly Encoded[], begins: boolean): Promise<void> {
    let at = 0;
    while (at < added.length) {
      let stop = at + 1;
      let method = "session/append";
      if (at === 0 && this.#isBegun && added[0]?.role === "assistant") {
        // The answer to the last request, and the results of its tools.
        method = "turn/end";
        while (added[stop]?.role === "tool") stop += 1;
      } else {
        for (let size = added[at]?.body.length ?? 0; stop < added.length && size < MAX_BATCH; stop++) {
          size += added[stop]?.body.length ?? 0;
        }
      }
      await this.#send(open, method, added.slice(at, stop), begins && stop === added.length);
      at = stop;
    }
  }

  async #send(open: Open, method: string, batch: readonly Encoded[], begins: boolean): Promise<void> {
    const last = batch.findLast((each) => each.role === "assistant");
    const usage = last?.usage ?? null;
    const messages = batch.map((each) => {
      const report = each.usage && each !== last ? `"usage":${sendable(each.usage)},` : "";
      return `{"id":"${each.id}",${report}${each.body.slice(1)}`;
    });
    const params = `{"session_id":${sendable(open.id)},"usage":${sendable(usage)},"messages":[${messages.join(",")}]}`;
    const appended = open.daemon.request<{ entry_ids: string[]; pending_calls?: unknown[] }>(method, params, COMPACT_MS);
    if (begins) {
      // Both at once: one does not wait for the other's answer.
      this.#begun = this.#begin(open);
      this.#begun.catch(() => undefined);
    }
    const result = await appended;
    batch.forEach(({ id }, at) => open.entries.set(id, result.entry_ids[at] ?? ""));
    open.leaf = batch.at(-1)?.id;
    this.#hasPendingCalls = Boolean(result.pending_calls?.length);
    if (method === "turn/end") this.#isBegun = false;
  }

  #begin(open: Open): Promise<Begun> {
    return open.daemon.request<Begun>("turn/begin", { session_id: open.id }, COMPACT_MS);
  }

  // --- the view -------------------------------------------------------------------------------------------------

  async #prepare(daemon: Daemon, history: History<Part>, setup: Setup): Promise<View> {
    const count = history.parts.length;
    await this.#sync(daemon, history, setup, true);
    if (count === 0) return { items: [], isWhole: true };
    const open = await this.#opened(daemon, setup);
    let epoch = -1;
    let about: Omit<View, "items" | "isWhole"> = {};
    try {
      const { token_usage: usage, ...begun } = await (this.#begun ?? this.#begin(open));
      epoch = usage.epoch;
      about = {
        maxOutputTokens: begun.max_output_tokens,
        tokens: usage.current_context_tokens ?? undefined,
        threshold: usage.threshold_tokens ?? undefined,
        isNew: begun.compaction?.compacted === true,
      };
    } catch (error) {
      if (!(error instanceof RpcError) || error.code !== CANNOT_FIT) throw error;
    }
    this.#isBegun = true;
    if (epoch === 1 && !this.#hasPendingCalls) {
      return { items: upTo(count), isWhole: true, ...about };
    }
    if (!this.#items || epoch !== this.#epoch || this.#hasPendingCalls) {
      this.#items = await this.#readView(open, history);
      this.#epoch = this.#hasPendingCalls ? -1 : epoch;
    } else {
      for (let index = this.#itemsCover; index < count; index++) this.#items.push(index);
    }
    this.#itemsCover = count;
    const items = [...this.#items];
    const isWhole = items.length === count && items.every((item, index) => item === index);
    return { items, isWhole, ...about };
  }

  /** Ask for the view. Costs its text. */
  async #readView(open: Open, history: History<Part>): Promise<(number | ShownMessage)[]> {
    const context = await open.daemon.request<{
      messages: { id?: string; role: string; content: string | Block[] }[];
    }>("session/context", { session_id: open.id }, CALL_MS);
    const places = new Map(this.#ids.map((id, index) => [id, index]));
    return context.messages.map(({ id, role, content }) => {
      const index = id === undefined ? undefined : places.get(id);
      const stays = index !== undefined && isSame(content, JSON.parse(sendable(history.encode(index).content)));
      return stays ? index : { role, content, index };
    });
  }
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** Drop the reports of a whole history that cannot be on requests of all messages before them. A report on a compacted
 * request must not pass for the size of the whole history. */
function keepBelievableUsages(added: readonly Encoded[]): void {
  let size = 0;
  for (const each of added) {
    if (size > MAX_TOKEN_CHARS * mostTokens(each.usage)) each.usage = undefined;
    size += each.body.length;
  }
}

/** Return a number of tokens that the input of a report is at most, whatever provider wrote it. */
function mostTokens(usage: object | undefined): number {
  const values: unknown[] = Object.values(usage ?? {});
  return values.reduce<number>((sum, value) => sum + (typeof value === "number" && value > 0 ? value : 0), 0);
}

/** Return how many of `ids` the session has. An id stands for all messages before it, too. */
function countStored(open: Open, ids: readonly string[]): number {
  let count = ids.length;
  while (count > 0 && !open.entries.has(ids[count - 1] ?? "")) count -= 1;
  return count;
}

/** Learn which messages a stored session has. */
async function readEntries(open: Open): Promise<void> {
  const { entries } = await open.daemon.request<{
    entries: { entry_id: string; in_context?: boolean; message?: { id?: string } }[];
  }>("session/history", { session_id: open.id }, COMPACT_MS);
  for (const { entry_id, in_context, message } of entries) {
    if (message?.id === undefined) continue;
    open.entries.set(message.id, entry_id);
    if (in_context) open.leaf = message.id;
  }
}
