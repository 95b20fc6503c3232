"""Judges of what clients were told, apart from whatever answered them.

Rule: a checker sees a history (who asked what, when, and what was answered) and the log's effects
as the reference tells them. It imports neither the product nor the simulation, so it can judge a
history from a file as well.
"""
