/** The frame of a page: theme variables, a nonce for its one script and style, and no other source of anything. */

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import * as vscode from "vscode";
import { inScript } from "./plain.ts";

export type PageKind = "context" | "chat";

const TITLES: { readonly [kind in PageKind]: string } = { context: "Context", chat: "Chat" };

/** Puts a page of ours into a webview, with the messages that it takes first. All of it is in its text: nothing is left
 * for it to fetch, which takes an editor that runs elsewhere longer than anything else. */
export function fill(webview: vscode.Webview, extension: vscode.Uri, kind: PageKind, first: readonly unknown[]): void {
  const nonce = randomBytes(18).toString("base64url");
  const { style, script } = partsOf(extension, kind);
  webview.html = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style nonce="${nonce}">${style}</style>
<title>${TITLES[kind]}</title>
</head>
<body class="${kind}">
<main id="root"></main>
<script nonce="${nonce}" type="application/json" id="first">${inScript(first)}</script>
<script nonce="${nonce}">${script}</script>
</body>
</html>`;
}

/** What a page may do and load. */
export function pageOptions(): vscode.WebviewOptions {
  return { enableScripts: true, enableCommandUris: false, enableForms: false, localResourceRoots: [] };
}

interface Parts {
  readonly style: string;
  readonly script: string;
}

const known = new Map<PageKind, Parts>();

/** Of the extension's own files, read once. */
function partsOf(extension: vscode.Uri, kind: PageKind): Parts {
  const before = known.get(kind);
  if (before !== undefined) return before;
  const text = (...parts: string[]) => readFileSync(vscode.Uri.joinPath(extension, ...parts).fsPath, "utf8");
  const parts = {
    style: text("media", "page.css") + text("media", `${kind}.css`),
    // What would end the element early stands in texts alone, where this reads the same.
    script: text("dist", "webview", `${kind}.js`).replaceAll("</script", "<\\/script"),
  };
  known.set(kind, parts);
  return parts;
}
