// What a provider's SDK threw, as `turn/error` takes it.

import type { RequestError } from "./mirror.js";

/** How often one model request is sent: the daemon answers at most three rejections with a compaction. */
export const MAX_ATTEMPTS = 4;
const MAX_CAUSES = 8;

/** Return the error with the HTTP status, the code and the body, where it or one of its causes has them as the SDKs of
 * the providers name them. */
export function requestError(error: unknown): RequestError {
  const found: RequestError = { message: error instanceof Error ? error.message : String(error) };
  let each: unknown = error;
  for (let depth = 0; depth < MAX_CAUSES && typeof each === "object" && each !== null; depth++) {
    const fields = each as Record<string, unknown>;
    for (const status of [fields.status, fields.statusCode]) {
      if (typeof status === "number") found.status ??= status;
    }
    if (typeof fields.code === "string" || typeof fields.code === "number") found.code ??= fields.code;
    for (const body of [fields.responseBody, fields.error, fields.body, fields.data]) {
      if (typeof body === "string" || (typeof body === "object" && body !== null && !(body instanceof Error))) {
        found.body ??= body;
      }
    }
    each = fields.cause ?? fields.lastError;
  }
  try {
    JSON.stringify(found);
  } catch {
    delete found.body;
  }
  return found;
}
