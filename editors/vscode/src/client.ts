/** One life of the daemon behind `vscode-languageclient`. A bundle of its own, loaded at the first need. */

import type { LogOutputChannel } from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  RevealOutputChannelOn,
  type CancellationToken,
  type DynamicFeature,
  type InitializeResult,
  type StaticFeature,
} from "vscode-languageclient/node";
import type { AgentEvent, Json, ToolAnswer, ToolParams } from "./protocol.ts";
import type { Running } from "./process.ts";

export interface Ears {
  onEvent(event: AgentEvent): void;
  onTool(params: ToolParams, token: CancellationToken): Promise<ToolAnswer>;
  onClosed(): void;
}

/** A connection that was initialized. */
export interface Life {
  readonly result: InitializeResult;
  request(method: string, params: unknown, token?: CancellationToken): Promise<unknown>;
  stop(): Promise<void>;
}

/** A client that leaves it to us what the person is told. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }

  /** What the client itself leans on, and no more: of LSP's, commands would be registered a second time beside
   * ours of the same names, and progress be shown beside the gauge. */
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    if ("registrationType" in feature && feature.registrationType.method.startsWith("textDocument/did")) super.registerFeature(feature);
  }
}

/** Speaks `initialize` with a daemon that was started. Rejects where it is refused or the pipe breaks. */
export async function connect(
  running: Running,
  options: { log: LogOutputChannel; trace: LogOutputChannel; settings: Json },
  ears: Ears,
): Promise<Life> {
  let isClosed = false;
  const client = new QuietClient("compactd", "compactd", async () => ({ reader: running.reader, writer: running.writer }), {
    documentSelector: [],
    outputChannel: options.log,
    traceOutputChannel: options.trace,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    initializationOptions: options.settings,
    initializationFailedHandler: () => false,
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => {
        if (!isClosed) ears.onClosed();
        isClosed = true;
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    },
  });
  client.onNotification("agent/event", (event: AgentEvent) => ears.onEvent(event));
  client.onRequest("tool/execute", (params: ToolParams, token: CancellationToken) => ears.onTool(params, token));
  await client.start();
  const result = client.initializeResult;
  if (result === undefined) throw new Error("initialize gave no result");
  return {
    result,
    // A third argument, even undefined, would make a list of the params.
    request: (method, params, token) =>
      token === undefined ? client.sendRequest<unknown>(method, params) : client.sendRequest<unknown>(method, params, token),
    stop: () => client.dispose(),
  };
}
