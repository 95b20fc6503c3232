"""What the commands of `logberg` share: arguments in, output and exit codes out.

Here lives how arguments are parsed, how a command finds its cluster, and how results and failures
are printed. What one command does stands in `logberg.commands`. Door: every module but
`cluster_lookup`, `command_tree`, `for_programs`, `main` and `old_variables`.
"""
