"""Kills leaders of a real cluster under load, again and again: nothing acknowledged may be lost.

    python -m tests.kills --count 500

Rule: only what a client was told counts. The time of a kill ends when a client learns of the first
change that the next leader committed. Every change that was acknowledged before is in the log of
every controller, once, at the offset in its answer.
"""
