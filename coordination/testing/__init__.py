"""The conformance suite of coordination: every backend passes it, also those of third parties.

`store` says what a store under test offers, `proxy` cuts its clients off, `harness` is what a case
does to both, `cases` are the cases, `matrix` runs them and writes the table. `python -m
logberg.coordination.testing URL` runs them against a store that is running.
"""
