// The gauge of compactd in OpenCode's sidebar: how full the context is, and how often it was compacted by whom. A plugin
// of OpenCode's terminal, which is loaded apart from compactd.js; docs/opencode.md tells how. It starts nothing and
// reads only what OpenCode holds already. Written for OpenCode 1.18.33 (`@opencode-ai/plugin/tui`); OpenCode itself
// brings `@opentui/solid`.

import { createElement, effect, insert, setProp } from "@opentui/solid";

/** How a summary of ours begins. */
const OURS = "[Conversation summary";
/** Of what a request may hold: from there on the line asks for attention. */
const NEAR = 0.9;
/** Behind OpenCode's own "Context" (100), before what it says of language servers. */
const ORDER = 150;

/** What of it is known: tokens of the newest request, the model's window, compactions. */
function known(api, sessionID) {
  const messages = api.state.session.messages(sessionID);
  // While it is written, nobody knows whose it will be.
  const summaries = messages.filter((message) => message.summary === true && message.time.completed);
  const ours = summaries.filter((message) =>
    api.state.part(message.id).some((part) => part.type === "text" && part.text.startsWith(OURS)),
  );
  const last = messages.findLast((message) => message.role === "assistant" && sum(message.tokens) > 0);
  const provider = api.state.provider.find((each) => each.id === last?.providerID);
  const limit = provider?.models[last?.modelID]?.limit;
  return {
    // A compaction's own request says nothing of the next one.
    used: last && last.summary !== true ? sum(last.tokens) : undefined,
    window: limit?.context || undefined,
    room: limit?.context ? limit.context - Math.min(limit.output ?? 0, limit.context / 2) : undefined,
    compactions: summaries.length,
    ours: ours.length,
  };
}

function sum(tokens) {
  if (!tokens) return 0;
  return tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write;
}

function gauge({ used, window }) {
  if (!window) return used === undefined ? "ctx –" : `ctx ${short(used)} tokens`;
  if (used === undefined) return `ctx – · ${short(window)}`;
  return `ctx ${Math.round((100 * used) / window)} % · ${short(used)}/${short(window)}`;
}

function compactions({ compactions: all, ours }) {
  if (!all) return "not compacted yet";
  const count = all === 1 ? "1 compaction" : `${all} compactions`;
  return all === ours ? count : `${count}, ${all - ours} by the model`;
}

function short(tokens) {
  if (tokens < 1_000) return `${tokens}`;
  if (tokens < 999_500) return `${Math.round(tokens / 1_000)}k`;
  return `${(tokens / 1_000_000).toFixed(1)}M`;
}

/** A line; `content` and `colour` are asked again when what they read has changed. */
function line(content, colour) {
  const made = createElement("text");
  effect(() => setProp(made, "fg", colour()));
  insert(made, content);
  return made;
}

export default {
  id: "compactd",
  tui: async (api) => {
    /** A slot that throws would take the sidebar with it. */
    const quietly = (read, other) => () => {
      try {
        return read();
      } catch {
        return other;
      }
    };
    api.slots.register({
      order: ORDER,
      slots: {
        sidebar_content(_context, { session_id }) {
          const theme = () => api.theme.current;
          const muted = () => theme().textMuted;
          const isDue = quietly(() => {
            const { used, room } = known(api, session_id);
            return used !== undefined && room !== undefined && used >= NEAR * room;
          }, false);
          const box = createElement("box");
          setProp(box, "flexDirection", "column");
          insert(box, [
            line("compactd", () => theme().text),
            line(
              quietly(() => gauge(known(api, session_id)) + (isDue() ? " · due" : ""), "ctx –"),
              () => (isDue() ? theme().warning : muted()),
            ),
            line(quietly(() => compactions(known(api, session_id)), ""), muted),
          ]);
          return box;
        },
      },
    });
  },
};
