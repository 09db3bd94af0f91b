// What a model answered: as the message that the next prompt will have for it.

import type { Fields, Message } from "./prompt.js";

/** The parts of an answer, collected from the parts of a stream, or given at once. */
export class Answer {
  readonly parts: Fields[];
  usage: unknown;
  readonly #open = new Map<string, Fields>();

  constructor(parts: readonly Fields[] = [], usage?: unknown) {
    this.parts = [...parts];
    this.usage = usage;
  }

  /** Take a part of a stream. */
  take(part: Fields): void {
    const { type, id, providerMetadata } = part;
    const [kind, step] = String(type).split(/-(start|delta|end)$/);
    if ((kind === "text" || kind === "reasoning") && step) {
      const key = `${kind} ${String(id)}`;
      if (step === "start") {
        const made: Fields = { type: kind, text: "" };
        this.#open.set(key, made);
        this.parts.push(made);
      }
      const open = this.#open.get(key);
      if (!open) return;
      if (step === "delta") open.text = String(open.text) + String(part.delta);
      if (providerMetadata) open.providerMetadata = providerMetadata;
    } else if (type === "finish") {
      this.usage = part.usage;
    } else if (SAID.has(String(type))) {
      this.parts.push(part);
    }
  }

  /** The calls that the application answers. */
  get calls(): Fields[] {
    return this.parts.filter((part) => part.type === "tool-call" && !part.providerExecuted);
  }

  /** Return the message that the next prompt will have. */
  message(): Message {
    return { role: "assistant", content: this.parts.filter((part) => SAID.has(String(part.type))).map(said) };
  }
}

const SAID = new Set(["text", "reasoning", "tool-call", "tool-result", "file", "reasoning-file", "custom"]);

function said({ providerMetadata, ...part }: Fields): Fields {
  const own = { ...part, ...(providerMetadata ? { providerOptions: providerMetadata } : {}) };
  if (part.type === "tool-call") return { ...own, input: parsed(part.input) };
  if (part.type === "tool-result") return { ...own, output: { value: part.result } };
  return own;
}

function parsed(input: unknown): unknown {
  if (typeof input !== "string") return input;
  try {
    return JSON.parse(input || "{}");
  } catch {
    return input;
  }
}

/** Return a report of the SDK's in the form of the Responses API; undefined if there is none. */
export function usageOf(usage: unknown): object | undefined {
  // In specification v2, the numbers are not divided.
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = (usage ?? {}) as Record<string, unknown>;
  const input = divided(inputTokens) ?? { total: inputTokens, cacheRead: cachedInputTokens };
  const output = divided(outputTokens) ?? { total: outputTokens, reasoning: reasoningTokens };
  if (!count(input.total)) return undefined;
  return {
    input_tokens: count(input.total),
    input_tokens_details: { cached_tokens: count(input.cacheRead), cache_write_tokens: count(input.cacheWrite) },
    output_tokens: count(output.total),
    output_tokens_details: { reasoning_tokens: count(output.reasoning) },
  };
}

function divided(tokens: unknown): Fields | undefined {
  return typeof tokens === "object" && tokens !== null ? (tokens as Fields) : undefined;
}

function count(value: unknown): number {
  return typeof value === "number" && value > 0 ? Math.round(value) : 0;
}
