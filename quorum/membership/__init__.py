"""Who belongs to the quorum: how the voters are formed, and what two nodes say when a link opens.

Here lives what decides which link is opened and who votes. Nothing here knows an entry of the log.
Door: every module.
"""
