// The interface that the plugin is written for is a part of the host's own. The compiler checks it; nothing runs this.

import type { OpenClawPluginApi } from "openclaw/plugin-sdk/core";
import type { CompactdEngine } from "PLUGIN/src/engine.js";
import type * as ours from "PLUGIN/src/host.js";

type Factory = Parameters<OpenClawPluginApi["registerContextEngine"]>[1];
type Engine = Awaited<ReturnType<Factory>>;
type Params<Method extends keyof Engine> = Parameters<Extract<NonNullable<Engine[Method]>, (...given: never) => unknown>>[0];
type Result<Method extends keyof Engine> = Awaited<
  ReturnType<Extract<NonNullable<Engine[Method]>, (...given: never) => unknown>>
>;
type Own<Method extends keyof CompactdEngine> = Awaited<
  ReturnType<Extract<CompactdEngine[Method], (...given: never) => unknown>>
>;

declare function given<Value>(): Value;

// What the host gives is what the plugin takes.
export const assemble: ours.AssembleParams = given<Params<"assemble">>();
export const bootstrap: ours.BootstrapParams = given<Params<"bootstrap">>();
export const commit: ours.CommitParams = given<Params<"commitTurn">>();
export const afterTurn: ours.AfterTurnParams = given<Params<"afterTurn">>();
export const compact: ours.CompactParams = given<Params<"compact">>();
export const spawn: ours.SpawnParams = given<Params<"prepareSubagentSpawn">>();
export const context: Parameters<Parameters<ours.Api["registerContextEngine"]>[1]>[0] = given<Parameters<Factory>[0]>();
// What the plugin returns is what the host takes; messages are the host's own objects.
export const info: Engine["info"] = given<CompactdEngine["info"]>();
export const assembled: Omit<Result<"assemble">, "messages"> = given<Omit<Own<"assemble">, "messages">>();
export const bootstrapped: Result<"bootstrap"> = given<Own<"bootstrap">>();
export const committed: Result<"commitTurn"> = given<Own<"commitTurn">>();
export const compacted: Result<"compact"> = given<Own<"compact">>();
export const spawned: Result<"prepareSubagentSpawn"> = given<Own<"prepareSubagentSpawn">>();
export const ended: Result<"onSubagentEnded"> = given<Own<"onSubagentEnded">>();
// What the plugin registers.
type Middleware = Parameters<OpenClawPluginApi["registerAgentToolResultMiddleware"]>[0];
export const event: ours.ResultEvent = given<Parameters<Middleware>[0]>();
export const place: ours.ToolContext = given<Parameters<Middleware>[1]>();
