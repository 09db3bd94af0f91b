// The tools of a test: what they return is asked of the test's own server.

export default {
  id: "inspection",
  name: "Inspection",
  register(api) {
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
