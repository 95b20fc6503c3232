"""A second state machine: what a log means, written from docs/format.md and docs/format/ alone.

Rule: it imports nothing of the product, and nothing that imports the product. So if both agree on a
state's hash, two programs that share no line read the log alike. If they differ, the page is
unclear or the product is wrong. Then one of those is mended, never only this one.

`replicas` and `clients` decide, too: what requests and events make of partitions, and what requests
make of quotas, credentials, entries and tokens. `access` decides about an action, and
`applied_quotas` says which quotas apply to a client. `placing` judges where the controller has put
replicas. They are written from Kafka's rules and our
ADRs. Stateful tests in `tests/properties` hold the controller's managers to them.
"""
