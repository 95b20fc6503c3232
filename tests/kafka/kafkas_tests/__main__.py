"""Runs Kafka's test classes on our controllers and on KRaft, and writes docs/kafka/kafkas-tests.md.

python -m tests.kafka.kafkas_tests                        every class, on both sides
python -m tests.kafka.kafkas_tests --class DeleteTopicTest --side logberg --keep FOLDER
python -m tests.kafka.kafkas_tests --list                 the classes
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from tests.kafka.kafkas_tests.classes import NOT_STARTED, all_classes
from tests.kafka.kafkas_tests.outcomes import keep, outcome_of
from tests.kafka.kafkas_tests.page import write_page
from tests.kafka.kafkas_tests.running import CLASS_S, ClassRun, Side, run_class


@click.command()
@click.option("--class", "wanted", multiple=True, help="A class, by its last name; default: all.")
@click.option(
    "--side",
    "sides",
    multiple=True,
    type=click.Choice([side.value for side in Side]),
    default=[side.value for side in Side],
    help="Default: both.",
)
@click.option("--method", default="", help="One method of the class. The outcome is not kept.")
@click.option("--keep", "kept", type=click.Path(path_type=Path), help="Where the output stays.")
@click.option("--limit-s", default=CLASS_S, help="The longest time for one class on one side.")
@click.option("--list", "only_list", is_flag=True, help="List the classes.")
@click.option("--write", "only_write", is_flag=True, help="Write the page from what is kept.")
def main(
    wanted: Sequence[str],
    sides: Sequence[str],
    method: str,
    kept: Path | None,
    limit_s: float,
    only_list: bool,
    only_write: bool,
) -> None:
    """Run Kafka's tests, one class after another. Exit 1 if one fails that KRaft passes."""
    if only_write:
        write_page()
        return
    names = [
        name
        for name in all_classes()
        if name not in NOT_STARTED and (not wanted or name.rpartition(".")[2] in wanted)
    ]
    if only_list:
        click.echo("\n".join(names))
        return
    if not names:
        raise click.ClickException("no class has such a name; --list shows all")
    failed = False
    for name in names:
        for side in map(Side, sides):
            with _folder(kept, name, side) as folder:
                run = run_class(name, side, folder, limit_s, method)
            click.echo(f"{name} on {side}: {_summary(run)}")
            failed |= side is Side.LOGBERG and _has_failed(run)
            if not method:
                keep(name, side, run)
                write_page()
    sys.exit(failed)


@contextmanager
def _folder(kept: Path | None, name: str, side: Side) -> Iterator[Path]:
    if kept is not None:
        yield kept.resolve() / name.rpartition(".")[2] / side.value
        return
    with tempfile.TemporaryDirectory(prefix="kafkas-test-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _has_failed(run: ClassRun) -> bool:
    outcome = outcome_of(run)
    return not outcome["ended"] or bool(outcome["failures"])


def _summary(run: ClassRun) -> str:
    outcome = outcome_of(run)
    if not run.ended:
        return f"did not end within {run.seconds:.0f} s"
    parts = [
        f"{outcome[end]} {end}"
        for end in ("passed", "failed", "skipped", "not run")
        if end in outcome
    ]
    lines = [f"{outcome['tests']} tests, {', '.join(parts)}, {run.seconds:.0f} s"]
    lines += [f"    failed: {name}: {why}" for name, why in outcome["failures"].items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
