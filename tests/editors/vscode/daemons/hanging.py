"""A program that never answers."""

import sys

print("I think about it", file=sys.stderr, flush=True)
sys.stdin.read()
