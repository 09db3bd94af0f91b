"""The summary: prompts, answers, checks, and what a model's summary may say."""
