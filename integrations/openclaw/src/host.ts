// The parts of OpenClaw's plugin interface that are used here, as `openclaw/plugin-sdk/core` of openclaw 2026.9.6 has
// them. A test compares them with the types of the package, which is too large to build a plugin with.

/** The version that the tests run with. */
export const TESTED = "openclaw 2026.9.6";

/** A message as OpenClaw holds it: of a user, an assistant or a tool, or of OpenClaw's own (`custom`,
 * `compactionSummary`, …). */
export interface Message {
  readonly role: string;
}

export interface RuntimeSettings {
  model: { provider: string | null; resolved: string | null };
  limits: { promptTokenBudget: number | null; maxOutputTokens: number | null };
}

/** Names a session in OpenClaw's store. */
export interface SessionTarget {
  agentId?: string;
  sessionId?: string;
  sessionKey?: string;
  storePath?: string;
}

export interface BootstrapParams {
  sessionId: string;
  sessionKey?: string;
  sessionTarget?: SessionTarget;
}

export interface AssembleParams {
  sessionId: string;
  sessionKey?: string;
  /** Between two requests of one turn: only what was said before the turn. */
  messages: Message[];
  tokenBudget?: number;
  availableTools?: Set<string>;
  citationsMode?: unknown;
  model?: string;
  runtimeSettings?: RuntimeSettings;
}

export interface AssembleResult {
  messages: Message[];
  estimatedTokens: number;
  promptAuthority?: "assembled" | "preassembly_may_overflow";
  systemPromptAddition?: string;
}

export interface CommitParams {
  sessionId: string;
  sessionKey?: string;
  /** From the user's message to the last answer. */
  messages: Message[];
}

export interface AfterTurnParams {
  sessionId: string;
  sessionKey?: string;
  messages: Message[];
}

export interface CompactParams {
  sessionId: string;
  sessionKey: string;
  tokenBudget?: number;
  force?: boolean;
  currentTokenCount?: number;
  customInstructions?: string;
  runtimeContext?: { [name: string]: unknown };
}

export interface CompactResult {
  ok: boolean;
  compacted: boolean;
  reason?: string;
  result?: { summary?: string; tokensBefore: number; tokensAfter?: number };
}

export interface SpawnParams {
  parentSessionKey: string;
  childSessionKey: string;
  parentSessionId?: string;
}

export interface ToolContext {
  sessionId?: string;
}

export interface ToolResult {
  content: { type: string; text?: string }[];
  details: unknown;
}

export interface ResultEvent {
  toolCallId: string;
  toolName: string;
  args: { [name: string]: unknown };
  result: ToolResult;
}

export interface Api {
  pluginConfig?: { [name: string]: unknown };
  registerContextEngine(id: string, factory: (context: { workspaceDir?: string }) => object): void;
  registerTool(factory: (context: ToolContext) => object | null, options?: { name?: string }): void;
  registerAgentToolResultMiddleware(
    handler: (event: ResultEvent, context: ToolContext) => Promise<{ result: ToolResult } | undefined>,
    options?: { runtimes?: "openclaw"[] },
  ): void;
  on(name: "gateway_stop", handler: () => Promise<void>): void;
}

const NEEDED = ["registerContextEngine", "registerTool", "registerAgentToolResultMiddleware", "on"] as const;

/** Throw if this OpenClaw lacks something that the plugin uses. */
export function check(api: Api): void {
  const missing = NEEDED.filter((name) => typeof api[name] !== "function");
  if (!missing.length) return;
  throw new Error(
    `this OpenClaw has no ${missing.join(", ")}. compactd was tested with ${TESTED}: install that version, or a newer ` +
      "compactd",
  );
}

/** What OpenClaw gives to its plugins as a module. */
interface Core {
  /** OpenClaw's own compaction, which asks a model. */
  delegateCompactionToRuntime(params: CompactParams): Promise<CompactResult>;
  /** What the plugin for memory tells the model. OpenClaw leaves it to the engine to add it. */
  buildMemorySystemPromptAddition(given: object): string | undefined;
}

interface Transcripts {
  readSessionTranscriptVisibleMessageDelta(
    target: SessionTarget & { cursor?: string; maxMessages: number; maxBytes: number },
  ): Promise<{ kind: string; entries?: { message: Message }[]; cursor?: string; hasMore?: boolean }>;
}

/** The most messages and bytes of a page that OpenClaw gives. */
const PAGE = { maxMessages: 10_000, maxBytes: 64 * 1024 * 1024 };

/** Return OpenClaw's module for plugins. Rejects outside of OpenClaw. */
export function core(): Promise<Core> {
  return sdk("core") as Promise<Core>;
}

/** Return all messages of a transcript, oldest first. During a turn, they are those before it. */
export async function transcriptOf({ agentId, sessionId, sessionKey, storePath }: SessionTarget): Promise<Message[]> {
  const transcripts = (await sdk("session-transcript-runtime")) as Transcripts;
  const target = { agentId, sessionId, sessionKey, storePath, ...PAGE };
  const messages: Message[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await transcripts.readSessionTranscriptVisibleMessageDelta(cursor ? { ...target, cursor } : target);
    messages.push(...(page.entries ?? []).map((entry) => entry.message));
    if (page.kind !== "page" || !page.hasMore || !page.entries?.length) return messages;
    cursor = page.cursor;
  }
}

function sdk(name: string): Promise<unknown> {
  return import(`openclaw/plugin-sdk/${name}`);
}
