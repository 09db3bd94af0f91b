/** What the context's and the chat's page have in common: a webview, a head above it, and both ways to it. */

import * as vscode from "vscode";
import type { Compactions } from "./compactions.ts";
import type { Daemon } from "./daemon.ts";
import { wasCancelled, words } from "./errors.ts";
import { fill, pageOptions, type PageKind } from "./page.ts";
import { oneLine } from "./plain.ts";
import type { AgentEvent } from "./protocol.ts";
import type { Sessions } from "./sessions.ts";
import type { Status } from "./status.ts";

/** What the panels share. */
export interface House {
  readonly extension: vscode.Uri;
  readonly daemon: Daemon;
  readonly sessions: Sessions;
  readonly compactions: Compactions;
}

/** Where a panel opens, and about which session. */
export interface Opening {
  readonly house: House;
  readonly id: string;
  readonly column: vscode.ViewColumn;
  readonly closed: () => void;
}

/** How long a page waits to be shown with what it begins with. The editor prepares a webview for as long as that. */
const BEGINNING_MS = 120;

interface Typed {
  readonly type: string;
}

/** A session's page. `To` is what it is told, `From` what it says. */
export abstract class PagePanel<To extends Typed, From extends Typed> implements vscode.Disposable {
  readonly id: string;
  protected readonly house: House;
  /** A moment of `performance.now`. */
  protected readonly openedAt = performance.now();
  private readonly panel: vscode.WebviewPanel;
  private readonly subscriptions: vscode.Disposable[];
  private readonly kind: PageKind;
  private isReady = false;
  private isDisposed = false;
  private waiting: To[] = [];
  private lastHead = "";

  protected constructor({ house, id, column, closed }: Opening, kind: PageKind) {
    this.house = house;
    this.id = id;
    this.kind = kind;
    this.panel = vscode.window.createWebviewPanel(`compactd.${kind}`, this.name(), column, {
      ...pageOptions(),
      retainContextWhenHidden: true,
      enableFindWidget: true,
    });
    this.panel.iconPath = vscode.Uri.joinPath(house.extension, "media", "icon.svg");
    this.subscriptions = [
      this.panel.webview.onDidReceiveMessage((value: unknown) => this.take(value)),
      house.sessions.onChange(() => this.head()),
      house.sessions.onEvent((event) => {
        if (event.session_id !== id) return;
        if (event.type === "session_closed" && event.reason === "deleted") this.dispose();
        else this.hear(event);
      }),
      house.sessions.onReread((reread) => {
        if (reread.id === id) this.returned(reread.isNew);
      }),
    ];
    this.panel.onDidDispose(() => {
      this.dispose();
      closed();
    });
  }

  get isActive(): boolean {
    return this.panel.active;
  }

  reveal(keepsFocus = false): void {
    this.panel.reveal(undefined, keepsFocus);
  }

  dispose(): void {
    this.isDisposed = true;
    for (const each of this.subscriptions) each.dispose();
    this.panel.dispose();
  }

  /** What the page said, or null where no page of ours says such a thing. */
  protected abstract read(value: unknown): From | null;
  protected abstract handle(message: From): Promise<void>;
  protected abstract headOf(status: Status, title: string): To;
  /** An event of this session. */
  protected abstract hear(event: AgentEvent): void;
  /** What is shown has to be read again: events were missed, or the daemon is a new one (`isNew`). */
  protected abstract returned(isNew: boolean): void;
  /** Tells the person, on the page. */
  protected abstract tell(problem: string): void;
  /** The page is there and hears what it is told from now on. */
  protected ready(): void {}

  /** Shows the page, with what it begins with if that is there soon. To be called once. */
  protected async begin(beginning: Promise<unknown>): Promise<void> {
    const isLate = new Promise((resolve) => setTimeout(resolve, BEGINNING_MS));
    await Promise.race([beginning.catch(() => undefined), isLate]);
    if (!this.isDisposed) fill(this.panel.webview, this.house.extension, this.kind, this.waiting.splice(0));
  }

  /** Tells the page; what comes before it is ready waits. */
  protected send(message: To): void {
    if (this.isReady) void this.panel.webview.postMessage(message);
    else this.waiting.push(message);
  }

  /** Shows where the session stands, if that is another thing than before. */
  protected head(): void {
    const status = this.house.sessions.status(this.id);
    if (status === null) return;
    const title = oneLine(status.title ?? "", 120) || "New chat";
    const message = this.headOf(status, title);
    const said = JSON.stringify(message);
    if (said === this.lastHead) return;
    this.lastHead = said;
    this.panel.title = this.name(title);
    this.send(message);
  }

  protected failed(error: unknown): void {
    if (wasCancelled(error)) return;
    this.house.daemon.log.error(words(error));
    this.tell(words(error));
  }

  private name(title = ""): string {
    if (this.kind === "chat") return oneLine(title, 40) || "Chat";
    return title === "" ? "Context" : `Context: ${oneLine(title, 40)}`;
  }

  private take(value: unknown): void {
    const message = this.read(value);
    if (message === null) {
      this.house.daemon.log.warn("a message that no page of compactd sends was dropped");
      return;
    }
    if (message.type === "ready") {
      this.isReady = true;
      this.ready();
      for (const each of this.waiting.splice(0)) void this.panel.webview.postMessage(each);
      return;
    }
    this.handle(message).catch((error: unknown) => this.failed(error));
  }
}
