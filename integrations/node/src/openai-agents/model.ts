// Models whose requests are kept within the window.
//
// The SDK has a filter for the input of a model request, but it stores what the filter returns in the session: a summary
// would take the place of the items. A model in front of the model changes the request alone.

import { getDefaultModel, Runner, type Model, type ModelProvider, type StreamEvent } from "@openai/agents";
import type { SessionOptions } from "../engine.js";
import type { ToolDefinition } from "../history.js";
import { conversationOf, current, runOf, type Conversation, type Request } from "./conversation.js";
import { isContinuation, type Item } from "./items.js";

type ModelRequest = Parameters<Model["getResponse"]>[0];
type ModelResponse = Awaited<ReturnType<Model["getResponse"]>>;

/** Which conversation a request belongs to. */
export interface Target {
  /** The conversation's id. Undefined: that of `session.run`, or else the run's own, in memory only. */
  sessionId?: string | undefined;
  options: SessionOptions;
}

/** Events of a stream before the model's answer begins. */
const OPENING = new Set(["response.created", "response.queued", "response.in_progress", "keepalive"]);
const FAILED = new Set(["response.failed", "response.incomplete", "error"]);
const models = new WeakSet<Model>();
const providers = new WeakSet<ModelProvider>();

/** Return a model that does what `model` does, with requests that fit the window. `name`: the model's, if it is known. */
export function modelFor(model: Model, target: Target, name?: string): Model {
  if (models.has(model)) return model;
  const made = new CompactdModel(model, target, name ?? nameOf(model));
  // What it does not do itself, the model does.
  const whole = new Proxy(made as unknown as Model, {
    get(own, field) {
      if (field in own) return Reflect.get(own, field, own) as unknown;
      const value: unknown = Reflect.get(model, field, model);
      return typeof value === "function" ? (value.bind(model) as unknown) : value;
    },
    has: (own, field) => field in own || field in model,
  });
  models.add(whole);
  return whole;
}

/** Return a provider whose models are as `modelFor` makes them. Undefined: the SDK's default provider. */
export function providerFor(provider: ModelProvider | undefined, target: Target): ModelProvider {
  if (provider && providers.has(provider)) return provider;
  const made: ModelProvider = {
    async getModel(name?: string): Promise<Model> {
      const real = provider ?? new Runner().config.modelProvider;
      return modelFor(await real.getModel(name), target, name ?? getDefaultModel());
    },
  };
  providers.add(made);
  return made;
}

class CompactdModel {
  readonly #model: Model;
  readonly #target: Target;
  readonly #name: string | undefined;

  constructor(model: Model, target: Target, name: string | undefined) {
    this.#model = model;
    this.#target = target;
    this.#name = name && !name.includes("/") ? `openai/${name}` : name;
    this.getResponse = this.getResponse.bind(this);
    this.getStreamedResponse = this.getStreamedResponse.bind(this);
  }

  async getResponse(given: ModelRequest): Promise<ModelResponse> {
    const request = await this.#request(given);
    let input = request ? await request.prepare() : given.input;
    for (;;) {
      try {
        const response = await this.#model.getResponse(limited({ ...given, input }, request?.maxTokens));
        request?.answered(response.output, usageOf(response.usage));
        return response;
      } catch (error) {
        const smaller = await request?.failed(error);
        if (!smaller) throw error;
        input = smaller;
      }
    }
  }

  async *getStreamedResponse(given: ModelRequest): AsyncIterable<StreamEvent> {
    const request = await this.#request(given);
    let input = request ? await request.prepare() : given.input;
    for (;;) {
      // Nothing is passed on until the answer begins: until then, the request can be sent again.
      let opening: StreamEvent[] | undefined = request ? [] : undefined;
      try {
        for await (const event of this.#model.getStreamedResponse(limited({ ...given, input }, request?.maxTokens))) {
          if (opening && isOpening(event)) {
            opening.push(event);
            continue;
          }
          if (opening) yield* opening;
          opening = undefined;
          if (event.type === "response_done") {
            request?.answered(event.response.output as readonly object[], usageOf(event.response.usage));
          }
          yield event;
        }
        if (opening) yield* opening;
        return;
      } catch (error) {
        const smaller = opening ? await request?.failed(error) : undefined;
        if (!smaller) {
          if (opening) yield* opening;
          throw error;
        }
        input = smaller;
      }
    }
  }

  /** Return the request as compactd's; undefined if it is left alone: the server holds the conversation. */
  async #request(given: ModelRequest): Promise<Request | undefined> {
    if (given.previousResponseId || given.conversationId) return undefined;
    const items: Item[] = typeof given.input === "string" ? [{ role: "user", content: given.input }] : given.input;
    if (isContinuation(items)) return undefined;
    return this.#conversation(items).request(items, {
      model: this.#name,
      systemPrompt: given.systemInstructions,
      tools: [...given.tools, ...given.handoffs].map(toolOf),
    });
  }

  #conversation(items: readonly Item[]): Conversation {
    const { sessionId, options } = this.#target;
    if (sessionId !== undefined) return conversationOf(sessionId, options);
    return current.getStore() ?? runOf(items, options);
  }
}

function isOpening(event: StreamEvent): boolean {
  if (event.type === "response_started") return true;
  if (event.type !== "model") return false;
  const kind = (event.event as { type?: unknown } | undefined)?.type;
  return typeof kind === "string" && (OPENING.has(kind) || FAILED.has(kind));
}

function limited(request: ModelRequest, maxTokens: number | undefined): ModelRequest {
  const settings = request.modelSettings;
  if (maxTokens === undefined || (settings.maxTokens !== undefined && settings.maxTokens <= maxTokens)) return request;
  return { ...request, modelSettings: { ...settings, maxTokens } };
}

/** Return a tool, or a handoff, which the model sees as a tool. */
function toolOf(given: object): ToolDefinition {
  const fields = given as Record<string, unknown>;
  const name = String(fields.name ?? fields.toolName ?? fields.type);
  const description = fields.description ?? fields.toolDescription;
  const schema = fields.parameters ?? fields.inputJsonSchema ?? fields.providerData;
  return {
    name,
    ...(typeof description === "string" ? { description } : {}),
    ...(schema === undefined ? {} : { input_schema: schema }),
  };
}

/** Return the name of a model that is an object; undefined if it does not say. */
function nameOf(model: Model): string | undefined {
  const fields = model as unknown as Record<string, unknown>;
  for (const each of [fields._model, fields.model, fields.modelId]) {
    if (typeof each === "string" && each) return each;
  }
  return undefined;
}

/** Return a report in the form of the Responses API; undefined if there is none. */
function usageOf(usage: unknown): object | undefined {
  const { inputTokens, outputTokens = 0, inputTokensDetails, outputTokensDetails } = (usage ?? {}) as {
    inputTokens?: number;
    outputTokens?: number;
    inputTokensDetails?: unknown;
    outputTokensDetails?: unknown;
  };
  if (!inputTokens) return undefined;
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: detail(inputTokensDetails, "cached_tokens") },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: detail(outputTokensDetails, "reasoning_tokens") },
    total_tokens: inputTokens + outputTokens,
  };
}

/** The SDK has the details of a report as a list with one element. */
function detail(details: unknown, name: string): number {
  const found = (Array.isArray(details) ? details : [details]) as (Record<string, number> | undefined)[];
  return found.reduce((sum, each) => sum + (each?.[name] ?? 0), 0);
}
