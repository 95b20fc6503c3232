"""Administrators' requests: topics, configs, ACLs, quotas, credentials, tokens, features.

Each is translated into requests of our own routes, and their replies back, in a module by subject.
Nothing is decided here. Door: `handlers.admin_handlers`.
"""
