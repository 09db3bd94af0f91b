"""What requests cost: prices, the provider's prompt cache, the ledger of a session, and when to compact.

Nothing here has a clock. All times are given, in seconds; all amounts are US dollars.
"""
