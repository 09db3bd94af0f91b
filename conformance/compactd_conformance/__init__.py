"""The conformance suite: black-box tests of the protocol for any program that implements it.

It starts the program, exchanges bytes with it, kills it, damages its files, and judges the answers. No check
depends on how compactd's daemon works, so another implementation can be tested in the same way.
"""
