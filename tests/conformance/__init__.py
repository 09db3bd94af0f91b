"""Tests of the conformance suite: compactd's daemon passes, and each of 36 broken daemons is found."""
