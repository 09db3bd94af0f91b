// The engine for OpenClaw's slot `contextEngine`. OpenClaw makes one for each turn, so it holds nothing: what is known
// about a conversation is in `conversation.ts`.

import { conversationOf, type Conversation } from "./conversation.js";
import {
  core,
  transcriptOf,
  type AfterTurnParams,
  type AssembleParams,
  type AssembleResult,
  type BootstrapParams,
  type CommitParams,
  type CompactParams,
  type CompactResult,
  type Message,
  type SpawnParams,
} from "./host.js";
import type { Options } from "./options.js";
import { keep, state } from "./state.js";

export const ID = "compactd";
/** The most keys of sessions that are known. */
const MAX_KEYS = 1_024;
/** Why OpenClaw asks for a compaction, if a request was too large, or would be. It then makes the request again. */
const RECOVERIES = ["overflow", "budget", "timeout_recovery"];
/** Characters for one token, where nothing better is known. */
const TOKEN_CHARS = 4;

export class CompactdEngine {
  readonly info = {
    id: ID,
    name: "compactd",
    ownsCompaction: true,
    // What `commitTurn` gets twice has the same ids, and is appended once.
    transcriptSemantics: {
      currentTurnFence: "before-current-turn-entry-v1" as const,
      turnAdvancementIdempotency: "atomic-idempotent-v1" as const,
    },
    hostRequirements: {
      "agent-run": {
        requiredCapabilities: ["assemble-before-prompt" as const],
        unsupportedMessage: "Its model requests are made by another program, so compactd cannot keep them in the window.",
      },
    },
  };
  readonly #options: Options;
  readonly #workingDir: string | undefined;

  constructor(options: Options, workingDir?: string) {
    this.#options = options;
    this.#workingDir = workingDir;
  }

  /** Read what was said before this process began. If that fails, the requests have what OpenClaw gives them. */
  async bootstrap({ sessionId, sessionKey, sessionTarget }: BootstrapParams): Promise<{ bootstrapped: boolean }> {
    if (!sessionTarget) return { bootstrapped: false };
    const read = () => transcriptOf({ ...sessionTarget, sessionId }).catch(() => []);
    await this.#conversation(sessionId, sessionKey).learn(read);
    return { bootstrapped: true };
  }

  /** Return the messages for the next model request. */
  async assemble(params: AssembleParams): Promise<AssembleResult> {
    const { messages, tokenBudget, runtimeSettings } = params;
    const conversation = this.#conversation(params.sessionId, params.sessionKey);
    const { provider, resolved } = runtimeSettings?.model ?? {};
    const id = resolved ?? params.model;
    const model = id && provider ? `${provider}/${id}` : id;
    const { promptTokenBudget: limit, maxOutputTokens: reserve } = runtimeSettings?.limits ?? {};
    // At the beginning of a turn, OpenClaw names the room for messages and what it reserves; later, the window.
    const { windows } = state();
    if (model && limit && reserve === null) windows.set(model, limit);
    const contextWindow = (model && windows.get(model)) || (tokenBudget && tokenBudget + (reserve ?? 0)) || undefined;
    const pending = reserve === null && limit && tokenBudget ? Math.max(0, limit - tokenBudget) : 0;
    const request = { model, contextWindow, workingDir: this.#workingDir, pending };
    const assembled = await conversation.assemble(messages, request);
    const systemPromptAddition = await memoryOf(params);
    return {
      messages: assembled?.messages ?? messages,
      estimatedTokens: assembled?.tokens ?? estimate(messages),
      // Without the daemon, OpenClaw looks itself whether the request fits.
      ...(assembled ? {} : { promptAuthority: "preassembly_may_overflow" as const }),
      ...(systemPromptAddition ? { systemPromptAddition } : {}),
    };
  }

  /** Append an accepted turn. It never fails: what could not be appended comes with the next request. */
  async commitTurn({ sessionId, sessionKey, messages }: CommitParams): Promise<{ status: "committed" }> {
    await this.#conversation(sessionId, sessionKey).commit(messages);
    return { status: "committed" };
  }

  /** Append a turn of an agent whose transcript OpenClaw does not keep. */
  async afterTurn({ sessionId, sessionKey, messages }: AfterTurnParams): Promise<void> {
    await this.#conversation(sessionId, sessionKey).record(messages);
  }

  /** Part of the interface. A message comes with its turn, or with the next request. */
  ingest(): Promise<{ ingested: boolean }> {
    return Promise.resolve({ ingested: false });
  }

  /** Compact because a person asked for it, or because a request was too large. Without the daemon, OpenClaw compacts
   * by itself. */
  async compact(params: CompactParams): Promise<CompactResult> {
    const conversation = this.#conversation(params.sessionId, params.sessionKey);
    const { trigger, attempt } = params.runtimeContext ?? {};
    if (RECOVERIES.includes(String(trigger))) {
      const { tokenBudget: budget, currentTokenCount: counted } = params;
      const tokens = await conversation.refused({ attempt: Number(attempt) || 1, budget, counted });
      if (tokens === undefined) return fallback(params);
      // The turn's own messages come with the request that OpenClaw makes now.
      return { ok: true, compacted: true, result: { tokensBefore: counted ?? tokens } };
    }
    const { customInstructions: instructions, force = false } = params;
    const done = await conversation.mirror().compact({ instructions, force });
    if (!done) return fallback(params);
    const { compacted, reason, summary, tokens_before: tokensBefore, tokens_after: tokensAfter } = done;
    return { ok: true, compacted, reason, result: { summary, tokensBefore, tokensAfter } };
  }

  /** Note which session begins a sub-agent. */
  prepareSubagentSpawn(params: SpawnParams): Promise<{ rollback: () => void } | undefined> {
    const { ids, parents } = state();
    const { childSessionKey: child, parentSessionId = ids.get(params.parentSessionKey) } = params;
    if (parentSessionId === undefined) return Promise.resolve(undefined);
    keep(parents, child, parentSessionId, MAX_KEYS);
    return Promise.resolve({ rollback: () => void parents.delete(child) });
  }

  onSubagentEnded({ childSessionKey }: { childSessionKey: string }): Promise<void> {
    state().parents.delete(childSessionKey);
    return Promise.resolve();
  }

  #conversation(sessionId: string, sessionKey: string | undefined): Conversation {
    const conversation = conversationOf(sessionId, this.#options);
    if (sessionKey !== undefined) {
      keep(state().ids, sessionKey, sessionId, MAX_KEYS);
      const parent = state().parents.get(sessionKey);
      if (parent !== undefined && parent !== sessionId) conversation.parentId = parent;
    }
    return conversation;
  }
}

/** Return what the plugin for memory adds to the system prompt; undefined if there is none. */
async function memoryOf({ availableTools = new Set(), citationsMode, sessionKey }: AssembleParams): Promise<string | undefined> {
  const given = { availableTools, citationsMode, agentSessionKey: sessionKey };
  return core().then(
    (module) => module.buildMemorySystemPromptAddition(given),
    () => undefined,
  );
}

async function fallback(params: CompactParams): Promise<CompactResult> {
  const reason = "compactd's daemon cannot be reached";
  return core().then(
    (module) => module.delegateCompactionToRuntime(params),
    () => ({ ok: false, compacted: false, reason }),
  );
}

function estimate(messages: readonly Message[]): number {
  return Math.ceil(JSON.stringify(messages).length / TOKEN_CHARS);
}
