"""Decisions about clients: who may do what, how much, and how a client proves who it is.

One manager for each kind of record. Door: every module.
"""
