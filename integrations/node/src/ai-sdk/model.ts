// Models whose requests are kept within the window.
//
// `prepareStep` could give the messages of a step, too. But in AI SDK 7, the later steps go on with what it returned, so
// messages could not come back, and it does not see a rejected request. A model does, and everything that takes a model
// can have a wrapped one.

import { gateway, type LanguageModel, type LanguageModelMiddleware } from "ai";
import type { SessionOptions } from "../engine.js";
import type { ToolDefinition } from "../history.js";
import { Answer } from "./answer.js";
import { conversationOf, runOf, type Request } from "./conversation.js";
import { divided, isContinuation, type Fields, type Message } from "./prompt.js";

/** Options of a model. */
export interface CompactdOptions extends SessionOptions {
  /** The conversation. Left out: what a call says, with `providerOptions: { compactd: { sessionId } }`; otherwise, a
   * conversation for each run, in memory only. */
  sessionId?: string | undefined;
}

type WrapGenerate = NonNullable<LanguageModelMiddleware["wrapGenerate"]>;
type WrapStream = NonNullable<LanguageModelMiddleware["wrapStream"]>;
type Model = Parameters<WrapGenerate>[0]["model"];
type Params = Parameters<WrapGenerate>[0]["params"];
type StreamPart = Awaited<ReturnType<WrapStream>>["stream"] extends ReadableStream<infer Part> ? Part : never;
/** A model that is an object. */
export type ModelObject = Exclude<LanguageModel, string>;

/** Parts of a stream before the model's answer begins. */
const OPENING = new Set(["stream-start", "response-metadata", "ping", "raw"]);
const SPECIFICATIONS = ["v2", "v3", "v4"];
const models = new WeakSet<object>();

/** Return a model that does what `model` does, with requests that fit the window. */
export function modelFor(given: LanguageModel, options: CompactdOptions): ModelObject {
  const model: ModelObject = typeof given === "string" ? defaultProvider().languageModel(given) : given;
  if (models.has(model)) return model;
  if (!SPECIFICATIONS.includes(model.specificationVersion)) {
    const version = String(model.specificationVersion);
    throw new TypeError(`compactd knows models of the specifications ${SPECIFICATIONS.join(", ")}, not ${version}`);
  }
  const { wrapGenerate, wrapStream } = middlewareFor(options);
  const real = model as Model;
  const own = {
    doGenerate: (params: Params) => wrapGenerate(operations(real, params)),
    doStream: (params: Params) => wrapStream(operations(real, params)),
  };
  // What it does not do itself, the model does.
  const whole = new Proxy(model, {
    get(_model, field) {
      if (field in own) return own[field as keyof typeof own];
      const value: unknown = Reflect.get(model, field, model);
      return typeof value === "function" ? (value.bind(model) as unknown) : value;
    },
  });
  models.add(whole);
  return whole;
}

function operations(model: Model, params: Params): Parameters<WrapGenerate>[0] {
  return { model, params, doGenerate: () => model.doGenerate(params), doStream: () => model.doStream(params) };
}

/** Return the provider that the SDK asks for a model that is named. */
function defaultProvider(): { languageModel(id: string): ModelObject } {
  return (globalThis as { AI_SDK_DEFAULT_PROVIDER?: typeof gateway }).AI_SDK_DEFAULT_PROVIDER ?? gateway;
}

/** Return the two functions of a middleware. */
export function middlewareFor(options: CompactdOptions): { wrapGenerate: WrapGenerate; wrapStream: WrapStream } {
  return {
    async wrapGenerate({ model, params: given }) {
      const { params, request } = requestOf(model, given, options);
      let messages = await request?.prepare();
      for (;;) {
        let result;
        try {
          result = await model.doGenerate(withMessages(params, messages, request));
        } catch (error) {
          messages = await request?.failed(error);
          if (!messages) throw error;
          continue;
        }
        request?.answered(new Answer(result.content as Fields[], result.usage));
        return result;
      }
    },
    async wrapStream({ model, params: given }) {
      const { params, request } = requestOf(model, given, options);
      let messages = await request?.prepare();
      for (;;) {
        try {
          const result = await model.doStream(withMessages(params, messages, request));
          if (!request) return result;
          const opened = await openingOf(result.stream);
          if (!opened.failed) return { ...result, stream: passedOn(opened, request) };
          messages = await request.failed(opened.failed.error);
          if (!messages) return { ...result, stream: passedOn(opened, request) };
          void opened.reader.cancel().catch(() => undefined);
        } catch (error) {
          messages = await request?.failed(error);
          if (!messages) throw error;
        }
      }
    },
  };
}

interface Opened {
  reader: ReadableStreamDefaultReader<StreamPart>;
  /** What was read: until the answer begins, the request can be sent again. */
  read: StreamPart[];
  /** The error in place of an answer. */
  failed?: { error: unknown };
}

async function openingOf(stream: ReadableStream<StreamPart>): Promise<Opened> {
  const reader = stream.getReader();
  const read: StreamPart[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { reader, read };
    read.push(value);
    if (value.type === "error") return { reader, read, failed: { error: value.error } };
    if (!OPENING.has(value.type)) return { reader, read };
  }
}

/** Return a stream of what was read, and of the rest. */
function passedOn({ reader, read }: Opened, request: Request): ReadableStream<StreamPart> {
  const answer = new Answer();
  let hasFailed = false;
  return new ReadableStream<StreamPart>({
    async pull(controller) {
      const part = read.shift() ?? (await reader.read()).value;
      if (part === undefined) {
        controller.close();
        return;
      }
      hasFailed ||= part.type === "error";
      answer.take(part as Fields);
      if (part.type === "finish" && !hasFailed) request.answered(answer);
      controller.enqueue(part);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

function withMessages(params: Params, messages: readonly Message[] | undefined, request: Request | undefined): Params {
  if (!messages) return params;
  const { instructions } = divided(params.prompt);
  const prompt = [...instructions, ...messages] as Params["prompt"];
  const most = request?.maxOutputTokens;
  const isLess = most !== undefined && (params.maxOutputTokens === undefined || most < params.maxOutputTokens);
  return { ...params, prompt, ...(isLess ? { maxOutputTokens: most } : {}) };
}

/** Return what the provider gets besides the view, and the request as compactd's; undefined if it is left alone: the
 * server holds the conversation. */
function requestOf(
  model: Model,
  given: Params,
  { sessionId, ...options }: CompactdOptions,
): { params: Params; request?: Request } {
  const { compactd: own, ...providerOptions } = given.providerOptions ?? {};
  const params = own ? { ...given, providerOptions } : given;
  const { instructions, messages } = divided(params.prompt);
  if (isContinuation(messages, providerOptions)) return { params };
  const named = typeof own?.sessionId === "string" ? own.sessionId : sessionId;
  const conversation = named === undefined ? runOf(messages, options) : conversationOf(named, options);
  const setup = {
    model: nameOf(model),
    systemPrompt: instructions.map(({ content }) => content).join("\n\n"),
    tools: (params.tools ?? []).map(toolOf),
  };
  return { params, request: conversation.request(messages, setup) };
}

function toolOf(given: object): ToolDefinition {
  const { name, description, inputSchema, args } = given as Record<string, unknown>;
  const schema = inputSchema ?? args;
  return {
    name: String(name),
    ...(typeof description === "string" ? { description } : {}),
    ...(schema === undefined ? {} : { input_schema: schema }),
  };
}

/** Return the model as `provider/id`. `openai.responses` is a part of `openai`; a gateway's ids name the provider. */
function nameOf({ provider, modelId }: Model): string {
  const [name = ""] = provider.split(".");
  return name === "gateway" || !name ? modelId : `${name}/${modelId}`;
}
