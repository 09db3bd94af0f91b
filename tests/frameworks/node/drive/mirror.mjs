// The base of the adapters, without a framework: messages are in the neutral form already.

import { closeDaemons, engineOf, shown } from "./base.mjs";

const mirrors = new Map();

function mirrorOf({ session, options = {} }) {
  if (!mirrors.has(session)) {
    const opening = { ...options, client: "test", tested: "a test 1.0" };
    mirrors.set(session, engineOf(options.command).mirror(session, opening));
  }
  return mirrors.get(session);
}

const history = (messages) => ({ parts: messages, encode: (index) => structuredClone(messages[index]) });

export const prepare = async (given) => mirrorOf(given).prepare(history(given.messages), given.setup ?? {});
export const record = async (given) => mirrorOf(given).record(history(given.messages));
export const failed = async (given) => mirrorOf(given).failed(given.error);
export const compact = async (given) => mirrorOf(given).compact(given.wish ?? {});
export const state = async (given) => mirrorOf(given).state();
export const recall = async (given) => mirrorOf(given).recall({ query: given.query ?? "", entryIds: given.ids ?? [], start: 0 });
export const view = (given) => shown(given.messages, given.items);
export const close = async () => closeDaemons();
