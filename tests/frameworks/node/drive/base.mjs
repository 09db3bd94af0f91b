// The parts of the package that only its adapters import.

export { closeDaemons, engineOf } from "./node_modules/compactd/dist/engine.js";
