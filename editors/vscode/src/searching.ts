/** Search in a session, also in what was compacted, as a list that follows the typing. */

import * as vscode from "vscode";
import type { Daemon } from "./daemon.ts";
import { words } from "./errors.ts";
import { oneLine } from "./plain.ts";

interface HitItem extends vscode.QuickPickItem {
  readonly entry: string | null;
}

const TYPED_MS = 150;
const MOST = 50;

/** Lets the person search; the entry that was picked, or null. */
export function search(daemon: Daemon, id: string): Promise<string | null> {
  return new Promise((resolve) => {
    const pick = vscode.window.createQuickPick<HitItem>();
    pick.title = "Search the session, compacted or not";
    pick.placeholder = "Words to look for";
    pick.matchOnDescription = pick.matchOnDetail = true;
    // What the list of commands gives the focus back to may take it after this one is open: it would close at once.
    pick.ignoreFocusOut = true;
    let asked = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async (query: string) => {
      const mine = ++asked;
      try {
        const { hits } = await daemon.request("session/search", { session_id: id, query, limit: MOST });
        if (mine !== asked) return;
        pick.items = hits.length === 0 ? [nothing(`Nothing holds “${oneLine(query, 60)}”`)] : hits.map((hit) => ({
          label: noIcons(oneLine(hit.snippet, 120)),
          detail: `${hit.entry_id} · ${hit.role}${hit.in_context === false ? " · compacted" : ""}`,
          entry: hit.entry_id,
          alwaysShow: true,
        }));
      } catch (error) {
        if (mine === asked) pick.items = [nothing(words(error))];
      } finally {
        if (mine === asked) pick.busy = false;
      }
    };
    pick.onDidChangeValue((value) => {
      clearTimeout(timer);
      asked += 1;
      if (value.trim() === "") {
        pick.items = [];
        pick.busy = false;
        return;
      }
      pick.busy = true;
      timer = setTimeout(() => void look(value.trim()), TYPED_MS);
    });
    pick.onDidAccept(() => {
      const entry = pick.selectedItems[0]?.entry ?? null;
      if (entry === null) return;
      resolve(entry);
      pick.hide();
    });
    pick.onDidHide(() => {
      clearTimeout(timer);
      pick.dispose();
      resolve(null);
    });
    pick.show();
  });
}

/** A list draws icons of `$(name)` in words: words of others must not. */
export function noIcons(text: string): string {
  return text.replaceAll("$(", "$ (");
}

function nothing(why: string): HitItem {
  return { label: noIcons(why), entry: null, alwaysShow: true };
}
