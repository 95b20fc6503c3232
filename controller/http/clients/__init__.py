"""The routes about clients: who may do what, how much, and how a client proves who it is.

`routes` is their part of the table. Each other module answers the routes of one kind: a change is
a function that makes a `RequestedChange`, and a read is one from a `View` to a message. `answers`
lists them by route. Door: `routes` and `answers`.
"""
