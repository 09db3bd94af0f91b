/** What works and what does not, in words. */

import * as vscode from "vscode";
import type { Daemon } from "./daemon.ts";
import { words } from "./errors.ts";
import { looked } from "./find.ts";
import { placesToLook, settingsNow } from "./places.ts";
import { PROTOCOL_VERSION } from "./protocol.ts";

/** The report, as Markdown source. */
export async function report(context: vscode.ExtensionContext, daemon: Daemon, activationMs: number): Promise<string> {
  const lines = ["# compactd: health check", ""];
  const ok = (good: boolean, text: string) => lines.push(`- ${good ? "OK" : "NOT OK"}: ${text}`);
  const manifest: { version?: unknown } = context.extension.packageJSON;
  ok(true, `extension ${String(manifest.version)}, protocol ${PROTOCOL_VERSION}, activated in ${activationMs.toFixed(1)} ms`);
  ok(true, `${vscode.env.appName} ${vscode.version}${vscode.env.remoteName ? `, remote: ${vscode.env.remoteName}` : ""}`);
  ok(vscode.workspace.isTrusted, vscode.workspace.isTrusted ? "the workspace is trusted" : "the workspace is not trusted: you can read sessions but not change them");
  try {
    await daemon.connected();
    const info = await daemon.request("daemon/info", {});
    ok(true, `daemon ${info.version}, protocol ${info.protocol_version}, pid ${info.pid}, up ${Math.round(info.uptime_s)} s, ${info.sessions} open`);
    ok(info.platform === "tested", `this platform is ${info.platform}`);
    if (daemon.ready !== null) {
      ok(true, `started as \`${daemon.ready.command}\` (${daemon.ready.origin}), ready after ${daemon.ready.startedMs} ms`);
    }
    lines.push("", "## Its paths", "");
    for (const [name, where] of Object.entries(info.paths)) lines.push(`- ${name}: ${where}`);
  } catch (error) {
    ok(false, words(error));
  }
  lines.push("", "## Where the daemon is looked for, in this order", "");
  const places = await placesToLook(context, settingsNow());
  for (const [origin, where] of looked(places)) lines.push(`- ${origin}: ${where}`);
  lines.push("", "The log: command “compactd: Show Log”. What is said on the wire: setting `compactd.trace.server`.", "");
  return lines.join("\n");
}
