"""A daemon with an older protocol version."""

from speaking import agree, introduce

introduce("compactd", "0.0.4", {"protocol_version": "0.4", "methods": ["session/start"]})
agree()
