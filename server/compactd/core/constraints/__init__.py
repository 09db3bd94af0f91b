"""The user's constraints: limits that the user set, found in 25 languages."""
