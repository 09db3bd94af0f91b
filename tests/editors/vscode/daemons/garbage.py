"""A program that talks, and not in frames."""

import sys

print("Welcome to the wrong program!", flush=True)
sys.stdin.read()
