// Tool outputs reduced before pi's model gets them. Off unless COMPACTD_PI_REDUCE says otherwise. A failure leaves an
// output as it is.

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Mirror } from "./mirror.ts";

const LEVELS = ["light", "default", "strong"] as const;
/** The daemon shortens no output with fewer characters. */
const MIN_CHARS = 500;
/** What may look like a mark of compactd: the daemon changes it in every output. */
const LOOKALIKE = /[[［【][\s\S]{0,16}[….⋯‥]/;
/** After so many failures in a row, no output is sent to the daemon any more. */
const MAX_FAILURES = 3;

/** `off`, `observe` (count only), or how much is left out. */
export type Reducing = "off" | "observe" | (typeof LEVELS)[number];

export interface ToolOutput {
  name: string;
  arguments: object;
  callId: string;
  isError: boolean;
}

type Block = { type: string; text?: string };

/** The value of COMPACTD_PI_REDUCE; undefined if it has no meaning. */
export function readReducing(value: string | undefined): Reducing | undefined {
  if (!value) return "off";
  return (["off", "observe", ...LEVELS] as const).find((each) => each === value);
}

export class Reducer {
  readonly #mirror: Mirror;
  readonly #reducing: Reducing;
  #failures = 0;

  constructor(mirror: Mirror, reducing: Reducing) {
    this.#mirror = mirror;
    this.#reducing = reducing;
  }

  /** Whether an output may be sent to the daemon. */
  get isOn(): boolean {
    return this.#reducing !== "off" && this.#failures < MAX_FAILURES;
  }

  /** The blocks to show instead of an output's; undefined if they stay as they are. `knowsView`: the daemon knows what
   * the model still sees. Rejects with `DaemonError`. */
  async reduce<B extends Block>(
    ctx: ExtensionContext,
    output: ToolOutput,
    content: B[],
    knowsView: boolean,
  ): Promise<B[] | undefined> {
    const texts = content.filter((block) => block.type === "text");
    if (!this.isOn || !texts.some(isReducible)) return undefined;
    try {
      const shown = [];
      for (const block of content) shown.push(await this.#shorten(ctx, output, block, texts.length === 1, knowsView));
      this.#failures = 0;
      return shown.some((block, at) => block !== content[at]) ? shown : undefined;
    } catch (error) {
      this.#failures += 1;
      throw error;
    }
  }

  async #shorten<B extends Block>(
    ctx: ExtensionContext,
    output: ToolOutput,
    block: B,
    isOnly: boolean,
    compare: boolean,
  ): Promise<B> {
    if (!isReducible(block)) return block;
    const isObserved = this.#reducing === "observe";
    const { content } = await this.#mirror.ask<{ content: string }>(ctx, "session/reduce", {
      name: output.name,
      arguments: output.arguments,
      content: block.text,
      // The call's result is linked with one original.
      ...(isOnly ? { call_id: output.callId } : {}),
      is_error: output.isError,
      compare,
      ...(isObserved ? { observe: true } : { level: this.#reducing }),
    });
    return isObserved || content === block.text ? block : { ...block, text: content };
  }
}

function isReducible(block: Block): boolean {
  return block.type === "text" && !!block.text && (block.text.length >= MIN_CHARS || LOOKALIKE.test(block.text));
}
