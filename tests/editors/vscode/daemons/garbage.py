"""A program that writes output, but not in LSP frames."""

import sys

print("Welcome to the wrong program!", flush=True)
sys.stdin.read()
