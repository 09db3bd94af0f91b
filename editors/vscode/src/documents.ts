/** Texts that are in no file: contexts before and after, an edit as it would be, a report. Read-only. */

import * as vscode from "vscode";

const SCHEME = "compactd";
const MOST = 64;

export class Documents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  private count = 0;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.query) ?? "";
  }

  /** A document with `text`. `name` is what its tab is called; its ending decides the language. */
  made(name: string, text: string): vscode.Uri {
    this.count += 1;
    const key = String(this.count);
    this.texts.set(key, text);
    for (const old of this.texts.keys()) {
      if (this.texts.size <= MOST) break;
      this.texts.delete(old);
    }
    return vscode.Uri.from({ scheme: SCHEME, path: `/${name.replace(/[/\\?#%]/g, " ")}`, query: key });
  }

  /** Shows one. */
  async show(name: string, text: string): Promise<void> {
    const document = await vscode.workspace.openTextDocument(this.made(name, text));
    await vscode.window.showTextDocument(document, { preview: true });
  }

  /** Shows two side by side. */
  async diff(before: vscode.Uri, after: vscode.Uri, title: string, column?: vscode.ViewColumn): Promise<void> {
    await vscode.commands.executeCommand("vscode.diff", before, after, title, {
      preview: true,
      ...(column === undefined ? {} : { viewColumn: column, preserveFocus: true }),
    });
  }

  /** Closes the diff whose right side is `after`. */
  async closeDiff(after: vscode.Uri): Promise<void> {
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    const shown = tabs.filter(({ input }) => input instanceof vscode.TabInputTextDiff && input.modified.toString() === after.toString());
    if (shown.length > 0) await vscode.window.tabGroups.close(shown, true);
  }

  dispose(): void {
    this.registration.dispose();
    this.texts.clear();
  }
}
