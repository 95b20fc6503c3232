"""Reading a log from its files: replay, feeds, following, transactions that settle, moments.

Here lives what all audit questions share; no question is answered here. Door: every module.
"""
