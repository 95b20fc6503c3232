"""`logberg export`."""

from pathlib import Path

import click

from logberg.cli.connection_options import ClusterConnection, reading_options
from logberg.cli.failure import Failure
from logberg.cli.output import note, print_json, say
from logberg.client.paged_lists import without_pages
from logberg.declared.dividing import files_of, fits_one_apply
from logberg.declared.writing import yaml_of
from metadata.messages.declared import DeclaredKind, ExportReply
from metadata.messages.wire import OBJECTS_MAX, VALUES_MAX

_KINDS = tuple(kind.value for kind in DeclaredKind)


@click.command("export")
@click.option(
    "--kind",
    "asked",
    multiple=True,
    type=click.Choice(_KINDS),
    help="Only this kind. Repeatable.",
)
@click.option(
    "--assignments",
    is_flag=True,
    help="Write the brokers of each partition. Such a file fits only clusters with these brokers.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write files into this folder: one for each kind, or several, each small enough for one "
    "apply.",
)
@reading_options
def command(
    *,
    asked: tuple[str, ...],
    assignments: bool,
    folder: Path | None,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Write the cluster's state as a file for `logberg apply`, in YAML.

    All of it is from one offset. Passwords and other secrets are not in it.
    """
    kinds = tuple(kind for kind in _KINDS if not asked or kind in asked)
    reply = cluster.ask(
        lambda client: client.export(map(DeclaredKind, kinds), assignments=assignments)
    )
    if folder is not None:
        _write(folder, reply, kinds, output)
    elif output == "json":
        print_json(without_pages(reply))
    else:
        for line in yaml_of(reply, kinds):
            say(line)
        if not fits_one_apply(reply, kinds):
            note(
                f"this file is too large for one apply ({OBJECTS_MAX:,} objects, {VALUES_MAX:,} "
                "values): `logberg export --folder` writes several that fit"
            )


def _write(folder: Path, reply: ExportReply, kinds: tuple[str, ...], output: str) -> None:
    names = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files_of(reply, kinds):
            with (folder / file.name).open("x", encoding="utf-8") as written:
                written.writelines(f"{line}\n" for line in file.lines)
            names.append(str(folder / file.name))
            if file.too_large:
                note(
                    f"{names[-1]}: {file.too_large} alone is too large for an apply; export it "
                    "without --assignments"
                )
    except FileExistsError as error:
        raise Failure(f"{error.filename} is there already; name another folder") from None
    except OSError as error:
        raise Failure(f"{folder} can't be written: {error}") from None
    if output == "json":
        print_json({"offset": reply.offset, "files": names})
        return
    for name in names:
        say(name)
