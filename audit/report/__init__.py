"""The audit as one HTML page for people: numbers, drawings, tables, and what is not proved.

This room draws. It computes nothing about a log; the jobs of `audit.embedded` and
`audit.questions.verification` do. Door: `gathering` and `page`.
"""
