"""Answers questions about a cluster from its log's files.

Plain Python; no running cluster is needed.

`places` finds logs, `reading` reads them, `questions` answers. `tables` defines what the two
engines, `embedded` and `spark`, must both return; `lake` keeps such tables for other tools.
`report` draws it, and `generated` writes made-up histories.
"""
