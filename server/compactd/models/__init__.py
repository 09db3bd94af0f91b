"""Models: the registry of models, observed context windows, providers and tokenizers."""
