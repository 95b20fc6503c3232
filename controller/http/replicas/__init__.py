"""The routes about partitions and their replicas: add, list, explain, reassign, what if.

`routes` is their part of the table. Each other module answers the routes of one kind: a change is
a function that makes a `RequestedChange`; a read is one from a `View` to a message, or to the steps
that find a long one. `answers` lists them by route. Door: `routes` and `answers`.
"""
