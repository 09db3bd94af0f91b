"""The harness of `benchmarks/against`: what it runs, tells and draws. No figure is asserted."""
