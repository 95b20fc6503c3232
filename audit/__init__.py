"""Replay, verify and dump, for whoever holds the files. Plain Python, no running cluster needed.

`places` finds logs, `reading` reads them, `questions` answers. `tables` says what the two engines,
`embedded` and `spark`, must both answer; `report` draws it, and `generated` makes histories up.
"""
