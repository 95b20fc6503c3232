"""Takes real clusters from one voter to three, to five and to three, with kills during each change.

    python -m tests.voter_runs --count 20

Rule: only what a client was told counts. What was acknowledged is in the log of each of the five
controllers, once, at the offset in its answer. A change of the voters is made, or refused and asked
for again. The pauses are the times between two acknowledged writes of any client.
"""
