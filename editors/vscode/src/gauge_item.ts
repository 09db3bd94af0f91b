/** The gauge in the status bar. */

import * as vscode from "vscode";
import type { Daemon } from "./daemon.ts";
import { gauge, type Gauge } from "./gauge.ts";
import type { Sessions } from "./sessions.ts";

const BACKGROUND = { none: undefined, warning: "statusBarItem.warningBackground", error: "statusBarItem.errorBackground" } as const;

export class GaugeItem implements vscode.Disposable {
  private readonly item: vscode.StatusBarItem;
  private readonly shown = new vscode.EventEmitter<Gauge>();
  private readonly subscriptions: vscode.Disposable[];
  /** What it shows now is another thing. */
  readonly onShow = this.shown.event;
  now: Gauge;
  private wasCompacting = false;
  private isFirst = true;
  private readonly daemon: Daemon;
  private readonly sessions: Sessions;

  constructor(daemon: Daemon, sessions: Sessions) {
    this.daemon = daemon;
    this.sessions = sessions;
    this.item = vscode.window.createStatusBarItem("gauge", vscode.StatusBarAlignment.Right, 90);
    this.item.name = "compactd: context gauge";
    this.item.command = "compactd.menu";
    this.now = this.draw();
    this.item.show();
    this.subscriptions = [sessions.onChange(() => this.changed())];
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
    this.shown.dispose();
    this.item.dispose();
  }

  private changed(): void {
    const before = this.now;
    this.now = this.draw();
    if (before.text !== this.now.text || before.tooltip !== this.now.tooltip) this.shown.fire(this.now);
    if (this.isFirst && this.sessions.current !== null && this.sessions.startedAt !== null) {
      this.isFirst = false;
      this.daemon.log.info(`first gauge ${(performance.now() - this.sessions.startedAt).toFixed(1)} ms after the first session`);
    }
    const isCompacting = this.sessions.current?.compacting != null;
    if (isCompacting !== this.wasCompacting) {
      this.wasCompacting = isCompacting;
      void vscode.commands.executeCommand("setContext", "compactd.compacting", isCompacting);
    }
  }

  private draw(): Gauge {
    const next = gauge(this.daemon.phase, this.sessions.current);
    const colour = BACKGROUND[next.colour];
    this.item.text = next.text;
    // A string, never Markdown: it holds words of others.
    this.item.tooltip = next.tooltip;
    this.item.accessibilityInformation = { label: next.label, role: "button" };
    this.item.backgroundColor = colour === undefined ? undefined : new vscode.ThemeColor(colour);
    return next;
  }
}
