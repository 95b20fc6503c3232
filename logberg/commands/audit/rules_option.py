"""`--rules FILE`: the user's own rules of the findings."""

from pathlib import Path

import click

from audit.findings.rule_files import RuleError, read_rules
from audit.findings.rules import RuleSet
from logberg.cli.failure import Failure

rules_option = click.option(
    "--rules",
    "rules_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A TOML file that adds rules, or changes or switches off built-in ones.",
)


def rules_of(path: Path | None) -> RuleSet:
    """Read the rules; None: the built-in ones. Raises Failure."""
    if path is None:
        return read_rules("", "")
    try:
        return read_rules(path.read_text(encoding="utf-8"), str(path))
    except RuleError as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(f"{path} can't be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise Failure(f"{path} is not UTF-8, so it is no file of rules.") from None
