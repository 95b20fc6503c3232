"""Files of declared state: what `logberg apply`, `diff` and `export` read and write.

`documents` reads YAML and knows the line of each value, `entries` says what a file may hold,
`declaration` puts files together into a request, `passwords` looks up passwords, `writing` writes
an export, `dividing` divides it into several files, and `showing` prints a plan. Door:
`declaration`, `dividing`, `passwords`, `showing` and `writing`.
"""
