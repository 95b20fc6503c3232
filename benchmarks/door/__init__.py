"""Crowds of strangers at a leader's ports."""
