"""One folder for each store. Each has `make_backend(settings)`; nothing else imports it.

Rule: a driver that isn't installed with Logberg itself is imported inside `make_backend`, and its
absence is a ConfigError that names the extra to install.
"""
