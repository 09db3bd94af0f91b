// What this process knows about a conversation, and which one a model request belongs to.

import { createHash, randomUUID } from "node:crypto";
import { engineOf, type SessionOptions } from "../engine.js";
import { MAX_ATTEMPTS, requestError } from "../failures.js";
import { isSame, sendable, type Setup } from "../history.js";
import type { Mirror } from "../mirror.js";
import { usageOf, type Answer } from "./answer.js";
import { bare, historyOf, type Message } from "./prompt.js";
import { TESTED } from "./sdk.js";
import { shown } from "./views.js";

const CLIENT = "ai-sdk";
/** The most conversations, those without an id, and calls that a process remembers. */
const MAX_CONVERSATIONS = 256;
const MAX_RUNS = 64;
const MAX_CALLS = 4_096;

/** One model request, until it is answered. */
export class Request {
  readonly #conversation: Conversation;
  readonly #mirror: Mirror<Message>;
  readonly #messages: readonly Message[];
  /** The messages as they are compared. */
  readonly #parts: readonly Message[];
  readonly #setup: Setup;
  #attempts = 1;
  /** The most output tokens that the request may ask for after it was rejected. */
  maxOutputTokens: number | undefined;

  constructor(
    conversation: Conversation,
    mirror: Mirror<Message>,
    messages: readonly Message[],
    parts: readonly Message[],
    setup: Setup,
  ) {
    this.#conversation = conversation;
    this.#mirror = mirror;
    this.#messages = messages;
    this.#parts = parts;
    this.#setup = setup;
  }

  /** Return the messages that the request shall contain. Without the daemon's help, they are those that the SDK gave. */
  async prepare(): Promise<readonly Message[]> {
    const usageOf = this.#conversation.usageOf(this.#mirror, this.#parts);
    const view = await this.#mirror.prepare(historyOf(this.#messages, this.#parts, usageOf), this.#setup);
    return !view || view.isWhole ? this.#messages : shown(this.#messages, view.items);
  }

  /** Report that the provider rejected the request. Return the messages to send instead; undefined: give up. */
  async failed(error: unknown): Promise<readonly Message[] | undefined> {
    if (this.#attempts >= MAX_ATTEMPTS) return undefined;
    this.#attempts += 1;
    const told = await this.#mirror.failed(requestError(error));
    if (!told?.retry) return undefined;
    this.maxOutputTokens = told.max_output_tokens ?? this.maxOutputTokens;
    return this.prepare();
  }

  /** Keep the provider's report, and which calls are this conversation's. An answer without a call is the last of a run:
   * there may be no next request, so it is recorded now. */
  answered(answer: Answer): void {
    const usage = usageOf(answer.usage);
    this.#conversation.noteUsage(this.#mirror, this.#parts, usage);
    for (const call of answer.calls) noteCall(String(call.toolCallId), String(call.toolName), this.#mirror);
    if (!answer.calls.length && answer.parts.length) void this.#record(answer.message(), usage);
  }

  async #record(answer: Message, usage: object | undefined): Promise<void> {
    const [messages, parts] = [[...this.#messages, answer], [...this.#parts, bare(answer)]];
    const history = historyOf(messages, parts, (index) => (index === this.#messages.length ? usage : undefined));
    // The next request has the answer again, perhaps in another form. It is billed once.
    if (await this.#mirror.record(history)) this.#conversation.forgetUsage(this.#mirror, usage);
  }
}

interface Report {
  count: number;
  last: Message;
  usage: object;
}

/** A conversation in this process. */
export class Conversation {
  readonly name: string;
  #options: SessionOptions;
  /** The first message. A request that begins otherwise is of a sub-agent, or of another use of the same model. */
  #first: Message | undefined;
  #last: readonly Message[] = [];
  readonly #usages = new Map<string, Report>();

  constructor(name: string, options: SessionOptions) {
    this.name = name;
    this.#options = options;
  }

  /** Use other options from the next request on. */
  adopt(options: SessionOptions): void {
    this.#options = options;
  }

  /** Return the daemon's session. */
  mirror(): Mirror<Message> {
    const { command } = this.#options;
    return engineOf(command).mirror(this.name, { ...this.#options, client: CLIENT, tested: TESTED });
  }

  /** Return the request that the SDK would make with these messages. */
  request(messages: readonly Message[], setup: Setup): Request {
    const parts = messages.map(bare);
    this.#first ??= parts[0];
    this.#last = parts;
    const mirror = !parts.length || isSame(parts[0], this.#first) ? this.mirror() : this.#other(parts[0]);
    return new Request(this, mirror, messages, parts, setup);
  }

  /** Return whether messages go on with the last request of this conversation. */
  continues(messages: readonly Message[]): boolean {
    const last = this.#last;
    if (!last.length || messages.length <= last.length) return false;
    return last.every((each, at) => isSame(each, bare(messages[at] as Message)));
  }

  #other(first: Message | undefined): Mirror<Message> {
    const digest = createHash("sha256").update(sendable(first)).digest("hex").slice(0, 12);
    const options = { ...this.#options, client: CLIENT, tested: TESTED, parentSessionId: this.name };
    return engineOf(this.#options.command).mirror(`${this.name}/${digest}`, options);
  }

  /** Remember the report on a request that ended with the last of `parts`. */
  noteUsage(mirror: Mirror<Message>, parts: readonly Message[], usage: object | undefined): void {
    const last = parts.at(-1);
    if (last && usage) this.#usages.set(mirror.name, { count: parts.length, last, usage });
    else this.#usages.delete(mirror.name);
  }

  forgetUsage(mirror: Mirror<Message>, usage: object | undefined): void {
    if (this.#usages.get(mirror.name)?.usage === usage) this.#usages.delete(mirror.name);
  }

  /** Return a function from the index of a message to the report on the request that it answers, as it is known when the
   * function is called: an answer may be recorded until then. */
  usageOf(mirror: Mirror<Message>, parts: readonly Message[]): (index: number) => object | undefined {
    return (index) => {
      const found = this.#usages.get(mirror.name);
      return index === found?.count && isSame(parts[index - 1], found.last) ? found.usage : undefined;
    };
  }
}

const conversations = new Map<string, Conversation>();
const runs: Conversation[] = [];
/** The calls of all conversations, by id; null if two conversations have one with the same id. */
const calls = new Map<string, { mirror: Mirror<Message>; toolName: string } | null>();

/** Return this process's conversation with an id. `options`: how it is opened from now on; undefined: as it was. */
export function conversationOf(sessionId: string, options: SessionOptions | undefined): Conversation {
  const name = `${CLIENT}:${sessionId}`;
  const found = conversations.get(name) ?? new Conversation(name, options ?? {});
  if (options) found.adopt(options);
  keep(conversations, name, found, MAX_CONVERSATIONS);
  return found;
}

/** Return the conversation of a request without an id: the one that it goes on with, or a new one, in memory. */
export function runOf(messages: readonly Message[], options: SessionOptions): Conversation {
  const found = runs.find((each) => each.continues(messages));
  if (found) return found;
  const made = new Conversation(`${CLIENT}:run:${randomUUID()}`, { ...options, persist: false });
  runs.unshift(made);
  for (const old of runs.splice(MAX_RUNS)) void old.mirror().close();
  return made;
}

function noteCall(callId: string, toolName: string, mirror: Mirror<Message>): void {
  const known = calls.get(callId);
  const isOurs = known === undefined || known?.mirror.name === mirror.name;
  keep(calls, callId, isOurs ? { mirror, toolName } : null, MAX_CALLS);
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

/** Return a call's tool and the session of its conversation; undefined if that is not known. */
export function callOf(callId: string): { mirror: Mirror<Message>; toolName: string } | undefined {
  return calls.get(callId) ?? undefined;
}
