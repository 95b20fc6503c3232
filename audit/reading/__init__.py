"""Reads a log from its files: replay, feeds, following, settling of transactions, moments.

This room holds what all questions of the audit share, but answers none. Door: every module.
"""
