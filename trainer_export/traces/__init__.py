"""Traces in, triplets out: pure rules from spans to (prompt, response, reward), without Django and without
I/O.

The default reproduces the reference adapters exactly, quirks included (`compat`); `better` is opt-in.
Invariant: nothing here changes its input, and the same spans in the same order always give the same output.
"""
