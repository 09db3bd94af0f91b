/** The pages that are open, one of a kind for a session. */

import * as vscode from "vscode";
import { ChatPanel } from "./chat_panel.ts";
import { ContextPanel } from "./context_panel.ts";
import type { Answer, Asked } from "./messages.ts";
import type { House } from "./page_panel.ts";

export class Panels implements vscode.Disposable {
  private readonly contexts = new Map<string, ContextPanel>();
  private readonly chats = new Map<string, ChatPanel>();
  private readonly house: House;

  constructor(house: House) {
    this.house = house;
  }

  /** The session whose page is in front; null where none is. */
  get active(): string | null {
    for (const panel of [...this.contexts.values(), ...this.chats.values()]) if (panel.isActive) return panel.id;
    return null;
  }

  context(id: string): ContextPanel {
    return shown(this.contexts, id, (closed) => new ContextPanel({ house: this.house, id, column: this.column(), closed }));
  }

  chat(id: string): ChatPanel {
    return shown(this.chats, id, (closed) => new ChatPanel({ house: this.house, id, column: this.column(), closed }));
  }

  /** Asks in the session's chat, which is opened if necessary. */
  ask(id: string, asked: Asked, token: vscode.CancellationToken): Promise<Answer> {
    return (this.chats.get(id) ?? this.chat(id)).ask(asked, token);
  }

  /** Closes a session's pages. */
  close(id: string): void {
    this.contexts.get(id)?.dispose();
    this.chats.get(id)?.dispose();
  }

  dispose(): void {
    for (const panel of [...this.contexts.values(), ...this.chats.values()]) panel.dispose();
  }

  private column(): vscode.ViewColumn {
    return this.contexts.size + this.chats.size > 0 ? vscode.ViewColumn.Active : (vscode.window.activeTextEditor?.viewColumn ?? vscode.ViewColumn.Active);
  }
}

function shown<P extends { reveal(): void }>(panels: Map<string, P>, id: string, make: (closed: () => void) => P): P {
  const known = panels.get(id);
  if (known !== undefined) {
    known.reveal();
    return known;
  }
  const panel = make(() => panels.delete(id));
  panels.set(id, panel);
  return panel;
}
