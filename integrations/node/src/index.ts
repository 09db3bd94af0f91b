// What all adapters share.

export { DaemonGone, RpcError } from "./daemon.js";
export { closeDaemons, type SessionOptions } from "./engine.js";
export type { Json } from "./history.js";
export type { SessionState } from "./mirror.js";
