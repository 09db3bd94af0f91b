/** The frame of a page: theme variables, a nonce for its one script, and no other source of anything. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

/** Puts a page of ours into a webview. `kind` names its script and style sheet. */
export function fill(webview: vscode.Webview, extension: vscode.Uri, kind: "context" | "chat", title: string): void {
  const nonce = randomBytes(18).toString("base64url");
  const at = (...parts: string[]) => webview.asWebviewUri(vscode.Uri.joinPath(extension, ...parts)).toString();
  webview.html = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${at("media", "page.css")}">
<link rel="stylesheet" href="${at("media", `${kind}.css`)}">
<title>${title}</title>
</head>
<body class="${kind}">
<main id="root"></main>
<script nonce="${nonce}" src="${at("dist", "webview", `${kind}.js`)}"></script>
</body>
</html>`;
}

/** What a page may do and load. */
export function pageOptions(extension: vscode.Uri): vscode.WebviewOptions {
  return {
    enableScripts: true,
    enableCommandUris: false,
    enableForms: false,
    localResourceRoots: [vscode.Uri.joinPath(extension, "media"), vscode.Uri.joinPath(extension, "dist", "webview")],
  };
}
