// An agent of the AI SDK, with compactd or without it.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAI as createOpenAI6 } from "@ai-sdk/openai-3";
import * as ai from "ai";
import * as ai6 from "ai-6";
import { closeDaemons } from "compactd";
import { CompactdSession, compactdMiddleware, compactdModel, compactdRecall, compactdReduce } from "compactd/ai-sdk";
import { useTool } from "./wire.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const TURNS = 100;
// What an application stores: the messages of each conversation.
const stored = new Map();
let made;

/** Say how an agent is made. `way`: how compactd gets its requests (`model`, `middleware`, `named`, `call`, `agent`,
 * `shared`, `ui`, or `none`); `sdk`: the SDK's version; `prune`: how the SDK itself shortens the messages. */
export function begin(given) {
  const { url, model, wire = "responses", recall = false, reduce, sdk = 7 } = given;
  const lib = sdk === 6 ? ai6 : ai;
  const openai = (sdk === 6 ? createOpenAI6 : createOpenAI)({ apiKey: "none", baseURL: url });
  const anthropic = createAnthropic({ apiKey: "none", baseURL: url });
  const provider = { responses: () => openai(model), chat: () => openai.chat(model), messages: () => anthropic(model) };
  const tools = Object.fromEntries(
    given.tools.map(({ name, description }) => {
      const own = lib.tool({
        description,
        inputSchema: lib.jsonSchema({
          type: "object",
          properties: { number: { type: "integer" } },
          required: ["number"],
          additionalProperties: false,
        }),
        needsApproval: given.approve === name,
        execute: (input) => useTool(name, input),
      });
      return [name, reduce ? compactdReduce(own, reduce) : own];
    }),
  );
  if (recall) tools.recall = compactdRecall(recall === true ? {} : recall);
  if (given.nested) {
    tools[given.nested] = lib.tool({
      description: "Counts.",
      inputSchema: lib.jsonSchema({ type: "object", properties: { task: { type: "string" } } }),
      execute: async ({ task }) => (await lib.generateText({ model: made.shared, prompt: task })).text,
    });
  }
  globalThis.AI_SDK_DEFAULT_PROVIDER = openai;
  made = { ...given, lib, tools, provider: given.script ? () => new Scripted(given.script) : provider[wire] };
}

/** A model that answers from a list. It keeps the prompts that it gets. */
class Scripted {
  specificationVersion = "v4";
  provider = "scripted";
  modelId = "one";
  supportedUrls = {};
  prompts = [];

  constructor(script) {
    this.script = script;
  }

  async doGenerate({ prompt, providerOptions }) {
    this.prompts.push(prompt);
    this.providerOptions = providerOptions;
    const tokens = { total: 10, noCache: 4, cacheRead: 5, cacheWrite: 1 };
    const content = this.script.shift();
    const usage = { inputTokens: tokens, outputTokens: { total: 3, text: 2, reasoning: 1 } };
    const isCall = content.some((part) => part.type === "tool-call" && !part.providerExecuted);
    return { content, finishReason: { unified: isCall ? "tool-calls" : "stop" }, usage, warnings: [] };
  }

  /** Each answer of the list has the parts of its stream. */
  async doStream({ prompt }) {
    this.prompts.push(prompt);
    const parts = this.script.shift();
    return {
      stream: new ReadableStream({
        start(controller) {
          for (const part of parts) controller.enqueue(part);
          controller.close();
        },
      }),
    };
  }
}

/** Return the settings of a call: the model, and whose conversation it is. */
function settings(session, options = {}) {
  const { lib, way, provider } = made;
  const model = way === "named" ? made.model : provider();
  const own = { ...options, sessionId: session ?? undefined };
  if (way === "shared") return { model: (made.shared ??= compactdModel(model, own)) };
  if (way === "none") return { model };
  if (way === "middleware") return { model: lib.wrapLanguageModel({ model, middleware: compactdMiddleware(own) }) };
  if (way === "call" || way === "agent") {
    made.wrapped ??= compactdModel(model, options);
    return { model: made.wrapped, ...(session ? { providerOptions: { compactd: { sessionId: session } } } : {}) };
  }
  return { model: compactdModel(model, own) };
}

/** Give the agent a request. Without `session`, the conversation has no id. Calls that wait for an approval are approved. */
export async function ask({ text, session = "one", stream = false, options }) {
  const messages = stored.get(session) ?? [];
  stored.set(session, messages);
  if (made.way === "ui") return askUi(text, session, messages, options);
  messages.push({ role: "user", content: text });
  for (;;) {
    const { result, deltas } = await answer(messages, session, stream, options);
    const steps = await result.steps;
    messages.push(...(made.sdk === 6 ? steps.at(-1).response.messages : await result.responseMessages));
    const asked = steps.at(-1).content.filter((part) => part.type === "tool-approval-request");
    if (!asked.length) return { output: await result.text, deltas };
    const approved = asked.map(({ approvalId }) => ({ type: "tool-approval-response", approvalId, approved: true }));
    messages.push({ role: "tool", content: approved });
  }
}

async function answer(messages, session, stream, options) {
  const { lib, way, tools, system } = made;
  const { model, providerOptions } = settings(session, options);
  const prepareStep = made.prune && ((step) => ({ messages: lib.pruneMessages({ messages: step.messages, ...made.prune }) }));
  const common = { tools, prepareStep, stopWhen: lib.stepCountIs(TURNS), ...(made.sdk === 6 ? { system } : { instructions: system }) };
  let result;
  if (way === "agent") {
    // One agent for all conversations.
    const { system: instructions, ...rest } = { instructions: system, ...common };
    made.agent ??= new lib.ToolLoopAgent({
      ...rest,
      model,
      prepareCall: (call) => ({ ...call, providerOptions: { compactd: { sessionId: made.session } } }),
    });
    made.session = session;
    result = await made.agent[stream ? "stream" : "generate"]({ messages });
  } else {
    const call = { ...common, model, messages, providerOptions, maxRetries: 0 };
    result = stream ? lib.streamText({ ...call, onError: () => {} }) : await lib.generateText(call);
  }
  let deltas = 0;
  if (stream) {
    for await (const part of result.fullStream) {
      if (part.type === "error") throw part.error;
      if (part.type === "text-delta") deltas += 1;
    }
  }
  return { result, deltas };
}

/** Do what the handler of a chat in a browser does: it gets all messages, and streams one back. */
async function askUi(text, session, messages, options) {
  const { lib, tools, system } = made;
  messages.push({ id: `u${messages.length}`, role: "user", parts: [{ type: "text", text }] });
  const result = lib.streamText({
    ...settings(session, options),
    instructions: system,
    tools,
    messages: await lib.convertToModelMessages(JSON.parse(JSON.stringify(messages))),
    stopWhen: lib.stepCountIs(TURNS),
  });
  let last;
  for await (const each of lib.readUIMessageStream({ stream: result.toUIMessageStream() })) last = each;
  messages.push({ ...last, id: `a${messages.length}` });
  return { output: await result.text, deltas: 0 };
}

/** Give a model that only answers a prompt. Return what it received: the index of a message that is the same object. */
export async function prompt({ messages, session = "one", options, script, providerOptions }) {
  const model = new Scripted([script ?? [{ type: "text", text: "Yes." }]]);
  const given = messages.map(revived);
  await compactdModel(model, { ...options, sessionId: session }).doGenerate({ prompt: given, providerOptions });
  const received = model.prompts[0].map((message) => (given.includes(message) ? given.indexOf(message) : message));
  return { received, providerOptions: model.providerOptions ?? null };
}

/** Give a prompt to a model that streams. Return what was passed on, and how many prompts the model received. */
export async function streamed({ messages, session = "one", options, script }) {
  const model = new Scripted(script);
  const { stream } = await compactdModel(model, { ...options, sessionId: session }).doStream({ prompt: messages });
  const parts = [];
  for await (const part of stream) parts.push(part);
  return { parts, requests: model.prompts.length };
}

/** Turn `{"$bytes"}` and `{"$url"}` into what the SDK has for them. */
function revived(value) {
  if (Array.isArray(value)) return value.map(revived);
  if (typeof value !== "object" || value === null) return value;
  if (value.$bytes !== undefined) return new Uint8Array(Buffer.from(value.$bytes, "base64"));
  if (value.$url !== undefined) return new URL(value.$url);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, revived(each)]));
}

const sessionOf = ({ session = "one", options }) => new CompactdSession(session, options);

export const messages = ({ session = "one" }) => stored.get(session) ?? [];
export const replace = ({ session = "one", messages: given }) => void stored.set(session, given);
export const state = (given) => sessionOf(given).state();
export const undo = (given) => sessionOf(given).undo({ force: given.force });
export const recall = (given) => sessionOf(given).recall(given.query ?? "", given.ids, given.start);
export const remove = (given) => sessionOf(given).delete();
export const wrap = ({ model }) => void compactdModel(model);
export const close = () => closeDaemons();
