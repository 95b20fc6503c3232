"""Reads `FEATURE=LEVEL`, as people write feature levels in a command."""

import click

from metadata.features import wrong_first_levels


def feature_and_level(text: str) -> tuple[str, int]:
    """Read `metadata.version=23`. Raises click.BadParameter."""
    name, equals, level = text.partition("=")
    if not equals or not name or not level.isdecimal():
        raise click.BadParameter(
            f"{text!r}: give a feature and its level, such as metadata.version=23"
        )
    return name, int(level)


def first_levels(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, int]:
    """Return the levels at which a new cluster begins. Raises click.BadParameter."""
    levels = dict(map(feature_and_level, texts))
    wrong = wrong_first_levels(levels)
    if wrong:
        raise click.BadParameter(wrong)
    return levels
