"""`logberg audit check-heads`: whether a log is the one whose signed heads were kept elsewhere."""

from pathlib import Path

import click

from audit.places.replicas import open_all
from audit.questions.kept_heads import KeptHeadFiles, compare_with_heads
from logberg.cli.failure import Failure
from logberg.cli.output import output_option, print_json, say
from logberg.commands.audit.failures import failing
from logberg.commands.head_keys import public_key_of
from logberg.processes.kept_places import read_kept


@click.command("check-heads")
@click.argument("where", nargs=-1, required=True)
@click.option(
    "--kept",
    required=True,
    metavar="PLACE",
    help="What was kept: a signed head as a file, or a place to which the controllers write heads "
    "(a folder or s3://BUCKET/PATH).",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    required=True,
    metavar="KEY",
    help="A controller's public key: its head.pub, as a file or as the line in it. Give all of "
    "them; heads that a majority signed count.",
)
@output_option
def command(*, where: tuple[str, ...], kept: str, keys: tuple[str, ...], output: str) -> None:
    """Compare logs with signed heads that were kept elsewhere; show the first batch that differs.

    Exit 1 if a log is not the one whose heads were kept. With a place, the first offset that
    differs is named; with a single head, the range in which it lies.
    """
    publics = [public_key_of(text).public for text in keys]
    with failing():
        files = _kept(kept)
        replicas = open_all(where)
        answers = {}
        for each in replicas:
            reader = each.reader()
            if reader.log_start:
                raise Failure(
                    f"{each.location} begins at offset {reader.log_start}: heads cover the whole "
                    "log. Name a folder that has it, or the archive beside it."
                )
            answers[each.name] = compare_with_heads(
                reader.batches(), reader.cluster_id, files, publics
            )
    if output == "json":
        print_json(
            {
                name: {
                    "ok": one.ok,
                    "heads": one.heads,
                    "held": one.held,
                    "newestHeld": one.newest_held,
                    "batches": one.batches,
                    "firstWrongBatch": one.first_wrong_batch,
                    "firstWrongOffset": one.first_wrong_offset,
                    "wrongBetween": one.wrong_between,
                    "signedTwice": one.signed_twice,
                    "refused": one.refused,
                }
                for name, one in answers.items()
            }
        )
    else:
        for name, one in answers.items():
            for file, why in one.refused.items():
                say(f"{file} does not count: {why}")
            if one.ok:
                say(
                    f"{name}: RIGHT: {one.held} kept heads are of this log; the newest has "
                    f"{one.newest_held} of its {one.batches} batches"
                )
            else:
                say(f"{name}: WRONG: {one.problem}")
    wrong = {name: one.problem for name, one in answers.items() if not one.ok}
    for name, problem in wrong.items():
        raise Failure(f"{name}: {problem}")


def _kept(where: str) -> KeptHeadFiles:
    try:
        if "://" not in where and Path(where).is_file():
            return KeptHeadFiles({where: Path(where).read_bytes()})
        return read_kept(where)
    except OSError as error:
        raise Failure(f"--kept {where}: {error.strerror or error}") from None
