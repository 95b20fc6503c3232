"""Reads KEY=VALUE on a command line."""

import click


def key_and_value(text: str) -> tuple[str, str]:
    """Divide at the first `=`. The value may be empty. Raises click.BadParameter."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.BadParameter(f"{text!r}: give a key and its value, such as retention.ms=60000")
    return key, value
