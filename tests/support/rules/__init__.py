"""Each provider's published rules for requests, as code that imports nothing from compactd."""
