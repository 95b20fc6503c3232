"""Attacks of SECURITY.md's list that concern every part alike."""
