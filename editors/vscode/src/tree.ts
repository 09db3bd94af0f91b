/** The sessions as a tree in their own container. */

import * as vscode from "vscode";
import { Coalescer } from "./coalesce.ts";
import type { Daemon } from "./daemon.ts";
import { words } from "./errors.ts";
import { gauge } from "./gauge.ts";
import { brief, count, oneLine, plural } from "./plain.ts";
import type { SessionInfo } from "./protocol.ts";
import type { Sessions } from "./sessions.ts";

const RELIST_MS = 250;
/** Of a title in the list, so that the gauge beside it has room. */
const LABEL_CHARS = 24;

export class SessionTree implements vscode.TreeDataProvider<SessionInfo>, vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changes.event;
  private readonly listing = new Coalescer(() => this.changes.fire(), RELIST_MS);
  private readonly subscriptions: vscode.Disposable[];
  private readonly daemon: Daemon;
  private readonly sessions: Sessions;
  private lastGauges = "";

  constructor(daemon: Daemon, sessions: Sessions) {
    this.daemon = daemon;
    this.sessions = sessions;
    this.subscriptions = [
      sessions.onList(() => this.listing.ask()),
      sessions.onChange(() => this.gaugesChanged()),
      daemon.onPhase((phase) => {
        void vscode.commands.executeCommand("setContext", "compactd.ready", phase.kind === "ready");
        if (phase.kind === "ready" || phase.kind === "failed") this.listing.ask();
      }),
    ];
  }

  async getChildren(parent?: SessionInfo): Promise<SessionInfo[]> {
    if (parent !== undefined) return [];
    try {
      return await this.sessions.list();
    } catch (error) {
      this.daemon.log.debug(`session/list: ${words(error)}`);
      return [];
    }
  }

  getTreeItem(info: SessionInfo): vscode.TreeItem {
    const status = this.sessions.status(info.session_id);
    const title = nameOf(info);
    const item = new vscode.TreeItem(oneLine(title, LABEL_CHARS), vscode.TreeItemCollapsibleState.None);
    const isCurrent = this.sessions.current?.id === info.session_id;
    const shown = status === null ? null : gauge({ kind: "ready" }, status);
    const number = shown === null ? null : withoutIcons(shown.text);
    item.id = info.session_id;
    item.description = [number, plural(info.message_count, "message"), oneLine(info.model ?? "", 60)].filter((each) => each).join(" · ");
    item.tooltip = [
      title,
      `${plural(info.message_count, "message")}, ${plural(info.compactions, "compaction")}, ${brief(info.bytes)} bytes`,
      oneLine(info.model ?? "no model", 80),
      `session ${oneLine(info.session_id, 80)}`,
      new Date(info.updated_at * 1000).toLocaleString(),
      ...(shown === null ? [] : [shown.tooltip]),
    ].join("\n");
    item.iconPath = new vscode.ThemeIcon(isCurrent ? "circle-filled" : info.open ? "circle-outline" : "archive");
    item.contextValue = "session";
    item.command = { command: "compactd.showContext", title: "Show Context", arguments: [info] };
    item.accessibilityInformation = {
      label: `Session ${title}, ${count(info.message_count)} messages${shown === null ? "" : `. ${shown.label}`}`,
    };
    return item;
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
    this.listing.dispose();
    this.changes.dispose();
  }

  private gaugesChanged(): void {
    const current = this.sessions.current;
    const gauges = current === null ? "" : `${current.id} ${Math.round(current.usage.percent ?? -1)} ${current.compacting !== null}`;
    if (gauges !== this.lastGauges) this.listing.ask();
    this.lastGauges = gauges;
  }
}

/** A session's title, or else its id. */
export function nameOf(info: { readonly title: string | null; readonly session_id: string }): string {
  return oneLine(info.title ?? "", 80) || `session ${oneLine(info.session_id, 40)}`;
}

function withoutIcons(text: string): string {
  return text.replace(/\$\([^)]*\)\s*/g, "");
}
