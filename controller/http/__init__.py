"""The controller's HTTP interface: routes, reading, writing, fetching, watching, status, metrics.

Here lives what turns a request into a question and an answer into a reply. Nothing here decides or
writes to the disk. Door: nothing for the other rooms; `controller.controller` and
`controller.node_view` put it together, and private are `describe`, `describe_features`, `openapi`.
"""
