"""Who belongs to the quorum: the first start, the greeting of a link, links and voters.

Here lives what decides which link is opened and who votes. Nothing here knows an entry of the log.
Door: `formation`; only `quorum.node` uses `greeting` and `links`.
"""
