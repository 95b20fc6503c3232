"""The one exception that ends a command with exit code 1."""

import click


class Failure(click.ClickException):
    """Something could not be done; the message says why and what to do."""
