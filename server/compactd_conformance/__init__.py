"""The laws and the wire as a black-box suite, for any program that speaks the protocol.

It starts the program, speaks bytes to it, kills it, cuts its files, and judges what comes back. Nothing here
knows how our daemon is made: the same sentences hold for another team's.
"""
