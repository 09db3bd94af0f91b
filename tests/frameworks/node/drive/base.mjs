// The parts of the package that only its adapters import.

export { shown } from "./node_modules/compactd/dist/openai-agents/views.js";
export { closeDaemons, engineOf } from "./node_modules/compactd/dist/engine.js";
