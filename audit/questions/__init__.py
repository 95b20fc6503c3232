"""Answers questions from a log's files: state, difference, history, search, verification.

Each module gives one answer; others hold the words for things in an answer. `audit.places` opens
files and `audit.reading` reads them. Door: every module but `history_values`.
"""
