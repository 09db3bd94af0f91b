// What this process knows about the conversation of an OpenClaw session.

import { commonLength, type View } from "../../node/src/history.js";
import type { Mirror } from "../../node/src/mirror.js";
import { TESTED, type Message } from "./host.js";
import { callIdOf, historyOf, isPlaceholder, type Fields } from "./messages.js";
import type { Options } from "./options.js";
import { keep, state } from "./state.js";
import { isOurs, shown } from "./views.js";

const CLIENT = "openclaw";
const MAX_CONVERSATIONS = 256;
/** The most views of one conversation that are known again. OpenClaw gives back the one that the turn began with. */
const MAX_VIEWS = 8;
/** A compaction within a turn must take away at least this share of what the request had before the turn. */
const MIN_GAIN = 0.25;
/** The share of the budget that a request may take that was refused before. */
const ROOM = 0.75;
/** What `turn/error` is told: OpenClaw says that a request was too large, and not what the provider wrote. */
const OVERFLOW = { code: "context_length_exceeded", message: "OpenClaw: the context window is exceeded" };

/** What is known about the request that is made. */
export interface Request {
  /** `provider/id`. */
  model: string | undefined;
  /** The model's window, or what is known to fit into it. */
  contextWindow: number | undefined;
  workingDir: string | undefined;
  /** Tokens of the messages that OpenClaw adds by itself: those of the turn. */
  pending: number;
}

/** A request that was too large, or would have been. */
export interface Refusal {
  /** The how manieth in a row. */
  attempt: number;
  /** The most tokens that it may have, and how many it had, as OpenClaw counts. */
  budget: number | undefined;
  counted: number | undefined;
}

/** What a request gets. */
export interface Assembled {
  messages: Message[];
  tokens: number | undefined;
}

export class Conversation {
  readonly #name: string;
  #options: Options;
  #request: Request | undefined;
  /** The history, without compactions, and what the requests got for it. */
  #whole: readonly Message[] = [];
  #view: Message[] | undefined;
  #sizes: Pick<View, "tokens" | "threshold"> = {};
  readonly #views: { view: readonly Message[]; whole: readonly Message[] }[] = [];
  /** The last request was too large: the next one must be smaller. */
  #refusal: Refusal | undefined;
  #isAtItsLeast = false;
  parentId: string | undefined;

  constructor(sessionId: string, options: Options) {
    this.#name = nameOf(sessionId);
    this.#options = options;
  }

  adopt(options: Options): void {
    this.#options = options;
  }

  /** Return the daemon's session. */
  mirror(): Mirror<Message> {
    const { contextWindow = this.#request?.contextWindow, ...rest } = this.#options;
    return state().engineOf(this.#options.command).mirror(this.#name, {
      ...rest,
      contextWindow,
      workingDir: this.#request?.workingDir,
      client: CLIENT,
      tested: TESTED,
      parentSessionId: this.parentId === undefined ? undefined : nameOf(this.parentId),
    });
  }

  /** Take the history from OpenClaw's transcript, unless it is known. A request of this process may have its end only. */
  async learn(read: () => Promise<Message[]>): Promise<void> {
    if (!this.#whole.length && !this.#view) this.#whole = await read();
  }

  /** Return the messages that the request shall contain. Undefined: the daemon cannot help. */
  async assemble(given: Message[], request: Request): Promise<Assembled | undefined> {
    const whole = this.#known(given);
    if (!whole) return { messages: given, tokens: this.#sizes.tokens };
    if (this.#view && !this.#refusal && isUnchanged(whole, this.#whole)) {
      // Between two requests of a turn, what was said before it is the same.
      await this.#makeRoom(request.pending);
      return { messages: this.#view, tokens: this.#sizes.tokens };
    }
    this.#request = request;
    this.#isAtItsLeast = false;
    if (!whole.length) return { messages: this.#take(whole, given, { items: [], isWhole: true }), tokens: 0 };
    let view = await this.#prepare(whole);
    if (view && this.#refusal && (await this.#shrink(view, this.#refusal))) view = await this.#prepare(whole);
    this.#refusal = undefined;
    if (!view) return undefined;
    return { messages: this.#take(whole, given, view), tokens: view.tokens };
  }

  /** Have the next request smaller. Return the size of the context now; undefined: the daemon cannot help. */
  async refused(refusal: Refusal): Promise<number | undefined> {
    const state = await this.mirror().state().catch(() => undefined);
    this.#refusal = state && refusal;
    return state && (state.token_usage.current_context_tokens ?? 0);
  }

  /** Append a turn that was accepted: its messages from the user's on. */
  async commit(turn: readonly Message[]): Promise<void> {
    const [first] = turn;
    // What is not known here, the next request has.
    if (!first || !(this.#view || this.#whole.length)) return;
    const start = this.#whole.findLastIndex((each) => isSameEntry(each, first));
    await this.record([...(start < 0 ? this.#whole : this.#whole.slice(0, start)), ...turn]);
  }

  /** Append what is new in `messages`. */
  async record(messages: readonly Message[]): Promise<void> {
    const whole = this.#known(messages);
    if (whole?.length) await this.mirror().record(historyOf(whole));
  }

  /** Compact, because a request was refused whose messages the daemon got only now. Return whether that changed
   * something. */
  async #shrink({ tokens, isNew }: View, { attempt, budget, counted }: Refusal): Promise<boolean> {
    // The turn's messages may have been enough for a compaction.
    if (attempt === 1 && isNew) return false;
    const mirror = this.mirror();
    if (attempt === 1 && tokens && budget && counted) {
      // OpenClaw counts in its own way. Room is left, so that the next messages do not make it due again.
      const targetTokens = Math.floor(Math.min(1, tokens / counted) * budget * ROOM);
      let done = await mirror.compact({});
      if (done && (!done.compacted || done.tokens_after > targetTokens)) done = await mirror.compact({ targetTokens });
      if (done?.compacted) return true;
    }
    return (await mirror.failed(OVERFLOW))?.retry === true;
  }

  #prepare(whole: readonly Message[]): Promise<View | undefined> {
    return this.mirror().prepare(historyOf(whole), { model: this.#request?.model });
  }

  #take(whole: readonly Message[], given: Message[], view: View): Message[] {
    const messages = view.isWhole && isUnchanged(whole, given) ? given : shown(whole, view);
    this.#whole = [...whole];
    this.#view = messages;
    this.#sizes = view;
    this.#views.unshift({ view: [...messages], whole: this.#whole });
    this.#views.length = Math.min(this.#views.length, MAX_VIEWS);
    return messages;
  }

  /** Compact what was said before the turn, if the turn's own messages leave too little room for it. */
  async #makeRoom(pending: number): Promise<void> {
    const { tokens, threshold } = this.#sizes;
    if (tokens === undefined || threshold === undefined || this.#isAtItsLeast || tokens + pending < threshold) return;
    // Half of the room, so that the next messages of the turn do not make it due again.
    const targetTokens = Math.floor((threshold - pending) / 2);
    this.#isAtItsLeast = true;
    if (targetTokens > tokens * (1 - MIN_GAIN) || targetTokens <= 0) return;
    const done = await this.mirror().compact({ targetTokens });
    const view = done?.compacted ? await this.#prepare(this.#whole) : undefined;
    if (!view) return;
    this.#take(this.#whole, this.#view ?? [], view);
    this.#isAtItsLeast = false;
  }

  /** Return the history that messages stand for. OpenClaw leaves out the beginning of a long one, and gives a view back
   * as if it were the history. Undefined: they contain a summary of which nothing is known here. */
  #known(messages: readonly Message[]): readonly Message[] | undefined {
    if (!messages.some(isOurs)) {
      const skipped = messages[0] && isPlaceholder(messages[0]) ? 1 : 0;
      const first = messages[skipped];
      const start = first ? this.#whole.findIndex((each) => isSameEntry(each, first)) : -1;
      return start + skipped > 0 && start >= 0 ? [...this.#whole.slice(0, start), ...messages.slice(skipped)] : messages;
    }
    const found = this.#views.find(({ view }) => commonLength(view, messages) === view.length);
    return found && [...found.whole, ...messages.slice(found.view.length)];
  }
}

function nameOf(sessionId: string): string {
  return `${CLIENT}:${sessionId}`;
}

function isUnchanged(one: readonly Message[], other: readonly Message[]): boolean {
  return one.length === other.length && commonLength(one, other) === one.length;
}

/** Return whether two messages are one of the transcript. OpenClaw may have it in two forms, with other ids of calls. */
function isSameEntry(one: Message, other: Message): boolean {
  const [first, second] = [one as Fields, other as Fields];
  if (first.role !== second.role || first.timestamp !== second.timestamp) return false;
  return first.role !== "toolResult" || callIdOf(first.toolCallId) === callIdOf(second.toolCallId);
}

/** Return this process's conversation of a session, with these options from now on. */
export function conversationOf(sessionId: string, options: Options): Conversation {
  const { conversations } = state();
  const found = conversations.get(sessionId) ?? new Conversation(sessionId, options);
  found.adopt(options);
  keep(conversations, sessionId, found, MAX_CONVERSATIONS);
  return found;
}
