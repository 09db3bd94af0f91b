// compactd in Vercel's AI SDK.
//
//   const model = compactdModel(openai("gpt-5.1"), { sessionId: "chat-1" });
//   const { text } = await generateText({ model, messages });

import "./sdk.js";
import type { LanguageModel, LanguageModelMiddleware } from "ai";
import { middlewareFor, modelFor, type CompactdOptions, type ModelObject } from "./model.js";

export type { CompactdOptions } from "./model.js";
export { CompactdSession } from "./session.js";
export { compactdRecall, compactdReduce, type ReduceLevel } from "./tools.js";

/** Return a model that does what `model` does, with requests that fit the window. A name is looked up as the SDK does
 * it. */
export function compactdModel<M extends LanguageModel>(
  model: M,
  options: CompactdOptions = {},
): M extends string ? ModelObject : M {
  return modelFor(model, options) as M extends string ? ModelObject : M;
}

/** Return the same as a middleware, for `wrapLanguageModel` and `wrapProvider`. Put it last, next to the model. */
export function compactdMiddleware(options: CompactdOptions = {}): LanguageModelMiddleware {
  return middlewareFor(options) as LanguageModelMiddleware;
}
