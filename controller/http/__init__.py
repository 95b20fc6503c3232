"""The controller's HTTP interface: routes, reads, changes, fetches, watches, status and metrics.

Here lives what turns a request into a call of another room, and its result into a reply. Nothing
here decides or writes to the disk. No other room imports this one; `controller.controller` imports
`parts` and `node_view`. Door: every module that `pyproject.toml` doesn't list as private.
"""
