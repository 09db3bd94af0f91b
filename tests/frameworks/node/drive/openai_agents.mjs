// An agent of the OpenAI Agents SDK, with compactd or without it.

import {
  Agent,
  MemorySession,
  OpenAIChatCompletionsModel,
  OpenAIProvider,
  OpenAIResponsesModel,
  Runner,
  RunState,
  setTracingDisabled,
  tool,
  Usage,
} from "@openai/agents";
import { closeDaemons } from "compactd";
import { CompactdSession, compactdModel, compactdProvider, compactdRecall, compactdReduce } from "compactd/openai-agents";
import OpenAI from "openai";
import { useTool } from "./wire.mjs";

setTracingDisabled(true);
const TURNS = 100;
const sessions = new Map();
/** What tools answered in requests to a scripted model. */
const results = [];
let made;

/** Make an agent. `way`: how compactd gets its requests (`run`, `runner`, `model`, `provider`, or `none`). */
export function begin(given) {
  const { url, model, wire = "responses", system, tools, recall = false, reduce, way = "run", options = {} } = given;
  const client = new OpenAI({ apiKey: "none", baseURL: url, maxRetries: 0 });
  const provider = given.script
    ? { getModel: () => new Scripted(given.script) }
    : new OpenAIProvider({ openAIClient: client, useResponses: wire === "responses" });
  const kind = wire === "responses" ? OpenAIResponsesModel : OpenAIChatCompletionsModel;
  const object = given.script ? new Scripted(given.script) : new kind(client, model);
  const { session: _, ...own } = options;
  const real = way === "run" ? compactdModel(object) : way === "model" ? compactdModel(object, own) : model;
  const agent = new Agent({
    name: "inspector",
    instructions: system,
    model: real,
    modelSettings: given.truncation ? { truncation: given.truncation } : {},
    tools: [
      ...tools.map(({ name, description }) =>
        tool({
          name,
          description,
          parameters: {
            type: "object",
            properties: { number: { type: "integer" } },
            required: ["number"],
            additionalProperties: false,
          },
          ...(reduce ? { outputGuardrails: [compactdReduce(reduce)] } : {}),
          needsApproval: given.approve === name,
          execute: (input) => useTool(name, input),
        }),
      ),
      ...(recall ? [compactdRecall()] : []),
    ],
  });
  if (given.nested) {
    const inner = new Agent({ name: given.nested, instructions: "You count.", model });
    agent.tools.push(inner.asTool({ toolName: given.nested, toolDescription: "Counts." }));
  }
  const wrapped = compactdProvider(provider, own);
  made = { agent, way, provider, wrapped };
}

/** A model that answers from a list. */
class Scripted {
  constructor(script) {
    this.script = script;
  }

  async getResponse({ input }) {
    results.push(...input.filter?.((item) => item.type === "function_call_result").map((item) => item.output.text));
    return { output: this.script.shift(), usage: new Usage() };
  }
}

function sessionOf({ session = "one", options = {} }) {
  if (!sessions.has(session)) {
    sessions.set(session, made.way === "none" || made.way === "memory" ? new MemorySession({ sessionId: session }) : new CompactdSession(session, options));
  }
  return sessions.get(session);
}

/** Make a session. `memory`: let the SDK's session store the items. */
export function open({ session, options = {}, memory = false }) {
  const underlyingSession = memory ? new MemorySession({ sessionId: session }) : undefined;
  sessions.set(session, new CompactdSession(session, { ...options, underlyingSession }));
}

/** Give the agent a request. Without `session`, the run has none. */
export async function ask(given) {
  const { text, stream = false } = given;
  const input = given.state ? await RunState.fromString(made.agent, given.state) : text;
  if (given.state) {
    for (const each of input.getInterruptions()) input.approve(each);
  }
  const session = given.session === null ? undefined : sessionOf(given);
  const options = { maxTurns: TURNS, stream };
  let running;
  if (made.way === "run" && session) running = session.run(made.agent, input, options);
  else if (made.way === "runner") {
    running = new Runner(session.runConfig({ modelProvider: made.provider })).run(made.agent, input, { ...options, session });
  } else {
    const modelProvider = made.way === "provider" ? made.wrapped : made.provider;
    running = new Runner({ modelProvider }).run(made.agent, input, { ...options, session });
  }
  const result = await running;
  let deltas = 0;
  if (stream) {
    for await (const event of result) if (event.type === "raw_model_stream_event") deltas += 1;
    await result.completed;
  }
  const isInterrupted = result.interruptions?.length > 0;
  return { output: isInterrupted ? null : result.finalOutput, deltas, state: isInterrupted ? result.state.toString() : null };
}

export const items = async (given) => sessionOf(given).getItems(given.limit);
export const add = async (given) => sessionOf(given).addItems(given.items);
export const pop = async (given) => (await sessionOf(given).popItem()) ?? null;
export const clear = async (given) => sessionOf(given).clearSession();
export const replace = async (given) => sessionOf(given).replaceHistoryWithCompaction(given.items);
export const transact = async (given) => sessionOf(given).applyHistoryTransaction(given.transaction);
export const mutate = async (given) => sessionOf(given).applyHistoryMutations({ mutations: given.mutations });
export const state = async (given) => sessionOf(given).state();
export const undo = async (given) => sessionOf(given).undo({ force: given.force });
export const recall = async (given) => sessionOf(given).recall(given.query ?? "", given.ids, given.start);
export const said = () => results;
export const close = () => closeDaemons();
