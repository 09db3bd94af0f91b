// The lines that a driven program and its test exchange.

const outputs = new Map();
let next = 1;

/** Ask the test for a tool's output. */
export function useTool(name, given) {
  const call = next++;
  return new Promise((resolve) => {
    outputs.set(call, resolve);
    say({ call, name, arguments: given });
  });
}

export function say(frame) {
  process.stdout.write(`${JSON.stringify(frame)}\n`);
}

/** Take the answer of the test to a call. */
export function takeOutput({ call, output }) {
  outputs.get(call)(output);
  outputs.delete(call);
}
