"""Kafka's own command line tools, run against our controllers, and what they print.

`commands` is the table. `running` runs one of them. `page` writes docs/kafka/tools.md.
`user_commands` and `users_page` are the same for users and tokens, and docs/kafka/users.md.
"""
