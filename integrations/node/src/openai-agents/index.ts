// compactd in the OpenAI Agents SDK for TypeScript.
//
//   const session = new CompactdSession("chat-1");
//   const result = await session.run(agent, "Hello");

import "./sdk.js";
import type { Model, ModelProvider } from "@openai/agents";
import type { SessionOptions } from "../engine.js";
import { modelFor, providerFor } from "./model.js";

export { CompactdSession, type CompactdSessionOptions } from "./session.js";
export { compactdRecall, compactdReduce, type ReduceLevel } from "./tools.js";

/** Options of a model or a provider of its own. */
export interface CompactdModelOptions extends SessionOptions {
  /** The conversation. Left out: that of `session.run`; without one, a conversation for each run, in memory only. */
  sessionId?: string | undefined;
}

/** Return a model for an agent that has it as an object: it does what `model` does, with requests that fit the window. */
export function compactdModel(model: Model, { sessionId, ...options }: CompactdModelOptions = {}): Model {
  return modelFor(model, { sessionId, options });
}

/** Return a provider for `new Runner({ modelProvider })` whose models are as `compactdModel` makes them. Without
 * `provider`, the SDK's default. */
export function compactdProvider(
  provider?: ModelProvider,
  { sessionId, ...options }: CompactdModelOptions = {},
): ModelProvider {
  return providerFor(provider, { sessionId, options });
}
