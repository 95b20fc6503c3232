"""Who belongs to the quorum: its first voters, those since, and what two nodes say on a new link.

This room decides which links may open and which nodes vote. Of the log's entries it reads those
that name voters, and nothing else.
Door: every module.
"""
