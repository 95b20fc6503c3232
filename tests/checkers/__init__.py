"""Checkers judge the answers that clients got, independently of the product.

Rule: a checker gets a history (who asked what, when, and the answer) and the effects of the log,
computed by the reference. It imports neither the product nor the simulation, so it can also judge a
history from a file.
"""
