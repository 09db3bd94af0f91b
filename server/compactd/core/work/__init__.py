"""The state of the work, derived from messages: plan, changed files, checks, errors, decisions."""
