"""Who belongs to the quorum: how the voters are formed, and what two nodes say when a link opens.

This room decides which links may open and which nodes vote. It knows no entry of the log.
Door: every module.
"""
