// The tools of a test: what they return is asked of the test's own server. For benchmarks, it is also an engine that
// changes nothing.

export default {
  id: "inspection",
  name: "Inspection",
  register(api) {
    api.registerContextEngine("inspection", () => ({
      info: {
        id: "inspection",
        name: "Inspection",
        // Then OpenClaw calls it before each request.
        ownsCompaction: true,
        transcriptSemantics: {
          currentTurnFence: "before-current-turn-entry-v1",
          turnAdvancementIdempotency: "atomic-idempotent-v1",
        },
      },
      ingest: async () => ({ ingested: false }),
      assemble: async ({ messages }) => ({ messages, estimatedTokens: 0 }),
      commitTurn: async () => ({ status: "committed" }),
      compact: async () => ({ ok: true, compacted: false }),
    }));
    const { url, tools } = api.pluginConfig;
    for (const { name, description } of tools) {
      const made = (session) => ({
        name,
        label: name,
        description,
        parameters: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] },
        async execute(_call, given) {
          const answer = await fetch(url, { method: "POST", body: JSON.stringify({ name, given, session }) });
          return { content: [{ type: "text", text: await answer.text() }], details: {} };
        },
      });
      api.registerTool(({ sessionKey }) => made(sessionKey), { name });
    }
  },
};
