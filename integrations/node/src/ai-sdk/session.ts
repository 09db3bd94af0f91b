// What a person may ask about a conversation.

import type { SessionOptions } from "../engine.js";
import type { Mirror, SessionState } from "../mirror.js";
import { question } from "../recall.js";
import { conversationOf } from "./conversation.js";
import type { Message } from "./prompt.js";

/** A conversation by its id: what it costs, what was said, and its last compaction. */
export class CompactdSession {
  readonly sessionId: string;
  readonly #options: SessionOptions | undefined;

  /** `options`: how the session is opened. Left out: as the model says. */
  constructor(sessionId: string, options?: SessionOptions) {
    this.sessionId = sessionId;
    this.#options = options;
  }

  /** Return how full the context is, what was billed, and the compactions. Rejects if the daemon fails. */
  state(): Promise<SessionState> {
    return this.#mirror().state();
  }

  /** Undo the last compaction: the next request has the messages again. Rejects with `RpcError` if there is none, or if
   * the messages would not fit the window. `force` undoes it anyway; the next request may compact again. */
  undo({ force = false }: { force?: boolean } = {}): Promise<void> {
    return this.#mirror().undo(force);
  }

  /** Return what was said earlier, as the tool `recall` would. `start`: the line at which the first of `entryIds` begins to
   * be shown. */
  recall(query: string, entryIds: readonly string[] = [], start = 0): Promise<string> {
    return this.#mirror().recall(question({ query, entry_ids: entryIds, start }));
  }

  /** Delete compactd's session and its journal. The messages are yours. */
  delete(): Promise<void> {
    return this.#mirror().delete();
  }

  #mirror(): Mirror<Message> {
    return conversationOf(this.sessionId, this.#options).mirror();
  }
}
