// What this process knows about the conversation of a session, and which session a model request belongs to.

import { AsyncLocalStorage } from "node:async_hooks";
import { createHash, randomUUID } from "node:crypto";
import { engineOf, type Engine, type Opening, type SessionOptions } from "../engine.js";
import { MAX_ATTEMPTS, requestError } from "../failures.js";
import { isSame, sendable, type Setup } from "../history.js";
import type { Mirror } from "../mirror.js";
import { grouped, historyOf, type Item } from "./items.js";
import { TESTED } from "./sdk.js";
import { shown } from "./views.js";

export const CLIENT = "openai-agents";
/** The most conversations, those without a session, and calls that a process remembers. */
const MAX_CONVERSATIONS = 256;
const MAX_RUNS = 64;
const MAX_CALLS = 4_096;
/** Milliseconds until new items are appended if no request does it: longer than a run takes to its next request. */
const RECORD_AFTER_MS = 1_000;

/** One model request, until it is answered. */
export class Request {
  readonly #conversation: Conversation;
  readonly #mirror: Mirror<Item[]>;
  readonly #given: Item[];
  readonly #messages: Item[][];
  readonly #setup: Setup;
  #attempts = 1;
  /** The most output tokens that the request may ask for after it was rejected. */
  maxTokens: number | undefined;

  constructor(conversation: Conversation, mirror: Mirror<Item[]>, given: Item[], setup: Setup) {
    this.#conversation = conversation;
    this.#mirror = mirror;
    this.#given = given;
    this.#messages = grouped(given);
    this.#setup = setup;
  }

  /** Return the items that the request shall contain. If the daemon cannot help, they are those that the SDK gave. */
  async prepare(): Promise<Item[]> {
    const usageOf = this.#conversation.usageOf(this.#mirror, this.#messages);
    const view = await this.#mirror.prepare(historyOf(this.#messages, usageOf), this.#setup);
    return !view || view.isWhole ? this.#given : shown(this.#messages, view.items);
  }

  /** Report that the provider rejected the request. Return the items to send instead; undefined: give up. */
  async failed(error: unknown): Promise<Item[] | undefined> {
    if (this.#attempts >= MAX_ATTEMPTS) return undefined;
    this.#attempts += 1;
    const told = await this.#mirror.failed(requestError(error));
    if (!told?.retry) return undefined;
    this.maxTokens = told.max_output_tokens ?? this.maxTokens;
    return this.prepare();
  }

  /** Keep the provider's report, for the answer's message, and which calls are this conversation's. */
  answered(output: readonly object[], usage: object | undefined): void {
    if (usage) this.#conversation.noteUsage(this.#mirror, this.#messages, usage);
    for (const { callId } of output as readonly { callId?: unknown }[]) {
      if (typeof callId === "string") noteCall(callId, this.#mirror);
    }
  }
}

/** A conversation in this process. */
export class Conversation {
  readonly name: string;
  #options: SessionOptions;
  /** The first item. A request that begins otherwise is of an agent that is used as a tool, or comes after a handoff that
   * rewrote the history. */
  #first: Item | undefined;
  #last: readonly Item[] = [];
  readonly #others = new Map<string, Opening>();
  readonly #usages = new Map<string, { count: number; last: Item[]; usage: object }>();
  #stored: (() => Promise<Item[]>) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(name: string, options: SessionOptions) {
    this.name = name;
    this.#options = options;
  }

  get engine(): Engine {
    return engineOf(this.#options.command);
  }

  /** Use other options from the next request on. */
  adopt(options: SessionOptions): void {
    this.#options = options;
  }

  /** Return the daemon's session. */
  mirror(): Mirror<Item[]> {
    return this.engine.mirror(this.name, { ...this.#options, client: CLIENT, tested: TESTED });
  }

  /** Return the daemon's session, once what was stored is in it. */
  async settled(): Promise<Mirror<Item[]>> {
    await this.#settle();
    return this.mirror();
  }

  /** Return the request that the SDK would make with `items`. */
  request(items: Item[], setup: Setup): Request {
    this.#first ??= items[0];
    this.#last = items;
    const isOwn = !items.length || isSame(items[0], this.#first);
    if (isOwn) this.#forgetStored();
    return new Request(this, isOwn ? this.mirror() : this.#other(items[0]), items, setup);
  }

  /** Return whether items go on with the last request of this conversation. */
  continues(items: readonly Item[]): boolean {
    const last = this.#last;
    return last.length > 0 && items.length > last.length && last.every((item, at) => isSame(item, items[at]));
  }

  /** Append what was stored to the daemon's session with the next request; if none comes soon, after a second, or before
   * the process ends by itself. `stored` returns all items. */
  recordSoon(stored: () => Promise<Item[]>): void {
    this.#stored = stored;
    this.engine.addUnfinished(this.#settle);
    this.#timer ??= setTimeout(() => void this.#settle(), RECORD_AFTER_MS).unref();
  }

  readonly #settle = async (): Promise<void> => {
    const stored = this.#stored;
    this.#forgetStored();
    if (!stored) return;
    const messages = grouped(await stored());
    this.#first ??= messages[0]?.[0];
    const mirror = this.mirror();
    await mirror.record(historyOf(messages, this.usageOf(mirror, messages)));
  };

  #forgetStored(): void {
    this.#stored = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.engine.removeUnfinished(this.#settle);
  }

  /** Forget the conversation, and delete the daemon's session, with those that this process began for agents used as
   * tools. */
  async clear(): Promise<void> {
    this.#forgetStored();
    const mirrors = [this.mirror(), ...[...this.#others].map(([name, options]) => this.engine.mirror(name, options))];
    this.#first = undefined;
    this.#last = [];
    this.#others.clear();
    this.#usages.clear();
    for (const mirror of mirrors) await mirror.delete();
  }

  #other(first: Item | undefined): Mirror<Item[]> {
    const digest = createHash("sha256").update(sendable(first)).digest("hex").slice(0, 12);
    const name = `${this.name}/${digest}`;
    const options = { ...this.#options, client: CLIENT, tested: TESTED, parentSessionId: this.name };
    this.#others.set(name, options);
    return this.engine.mirror(name, options);
  }

  /** Remember the report on a request that ended with the last of `messages`. */
  noteUsage(mirror: Mirror<Item[]>, messages: readonly Item[][], usage: object): void {
    const last = messages.at(-1);
    if (last) this.#usages.set(mirror.name, { count: messages.length, last, usage });
  }

  /** Return a function from the index of a message to the report on the request that it answers. */
  usageOf(mirror: Mirror<Item[]>, messages: readonly Item[][]): (index: number) => object | undefined {
    const found = this.#usages.get(mirror.name);
    if (!found) return () => undefined;
    return (index) => (index === found.count && isSame(messages[index - 1], found.last) ? found.usage : undefined);
  }
}

/** The conversation of the run that this code is part of. */
export const current = new AsyncLocalStorage<Conversation>();

const conversations = new Map<string, Conversation>();
const runs: Conversation[] = [];
/** The sessions of calls, by id; null if two conversations have a call with the same id. */
const calls = new Map<string, Mirror<Item[]> | null>();

/** Return this process's conversation with a session id, with these options from now on. */
export function conversationOf(sessionId: string, options: SessionOptions): Conversation {
  const name = `${CLIENT}:${sessionId}`;
  const key = JSON.stringify([options.command ?? null, name]);
  const found = conversations.get(key) ?? new Conversation(name, options);
  found.adopt(options);
  keep(conversations, key, found, MAX_CONVERSATIONS);
  return found;
}

/** Return the conversation of a request that has no session: the one that it goes on with, or a new one, in memory. */
export function runOf(items: readonly Item[], options: SessionOptions): Conversation {
  const found = runs.find((each) => each.continues(items));
  if (found) return found;
  const made = new Conversation(`${CLIENT}:run:${randomUUID()}`, { ...options, persist: false });
  runs.unshift(made);
  for (const old of runs.splice(MAX_RUNS)) void old.mirror().close();
  return made;
}

function noteCall(callId: string, mirror: Mirror<Item[]>): void {
  const known = calls.get(callId);
  keep(calls, callId, known === undefined || known?.name === mirror.name ? mirror : null, MAX_CALLS);
}

/** Put a value at the end of a map, and drop the oldest beyond `most`. */
function keep<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= most) break;
    map.delete(oldest);
  }
}

/** Return the session of the run that made a tool call. */
export async function sessionOfCall(callId: string | undefined): Promise<Mirror<Item[]> | undefined> {
  const own = callId === undefined ? undefined : calls.get(callId);
  // A run that was interrupted goes on with the tool, before its first model request.
  return own ?? (await current.getStore()?.settled());
}
