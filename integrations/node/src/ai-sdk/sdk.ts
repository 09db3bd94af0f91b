// Whether the installed SDK is one that this adapter knows.

import * as sdk from "ai";

/** The versions that the tests run with. */
export const TESTED = "ai 7.0 and 6.0";
const NEEDED = ["gateway", "jsonSchema"];

const missing = NEEDED.filter((name) => typeof (sdk as Record<string, unknown>)[name] === "undefined");
if (missing.length) {
  throw new Error(
    `ai has no ${missing.join(", ")}. compactd was tested with ${TESTED}: install that version, or a newer compactd`,
  );
}
