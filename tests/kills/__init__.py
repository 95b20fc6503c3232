"""Leaders of a real cluster are killed under load, again and again; nothing acknowledged is lost.

    python -m tests.kills --count 500

Rule: what counts is what a client was told. A kill's figure ends with the first change that a
client is told of and that the next leader committed; what was told before stands in the log at
the offset that was told, once, on every controller.
"""
