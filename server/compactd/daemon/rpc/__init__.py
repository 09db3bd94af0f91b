"""The JSON-RPC transport: pipes, framing, decoding, dispatch of requests and outgoing messages."""
