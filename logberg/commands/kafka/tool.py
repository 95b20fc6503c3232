"""`logberg kafka tool`: Kafka's own command line tools on a cluster of `kafka up`."""

import os
from pathlib import Path

import click

from logberg.cli.default_folder import DEFAULT_FOLDER
from logberg.cli.failure import Failure
from logberg.cli.output import say
from logberg.kafka.jars import DEFAULT_VERSION, TOOLS, default_cache, kafka_jars
from logberg.kafka.java import java_for_kafka
from logberg.kafka.kafka_error import KafkaError
from logberg.kafka.tools import (
    CLASSES,
    KafkaTools,
    check_known,
    config_option,
    names_a_cluster,
    names_settings,
    with_address,
)
from logberg.local.cluster_access import find_kafka
from logberg.local.cluster_file import LocalClusterError


@click.command(
    "tool",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=f"NAME is one of: {', '.join(CLASSES)}.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="LOGBERG_DATA",
    default=DEFAULT_FOLDER,
    show_default=True,
    help="Folder of `kafka up`.",
)
@click.option(
    "--controllers",
    "to_controllers",
    is_flag=True,
    help="Ask the controllers, not the brokers, where the tool knows --bootstrap-controller.",
)
@click.option(
    "--kafka-version",
    metavar="VERSION",
    default=DEFAULT_VERSION,
    show_default=True,
    help="Version of the tools; it may differ from that of the brokers.",
)
@click.argument("name", metavar="NAME")
@click.argument("arguments", metavar="[ARGUMENTS]...", nargs=-1, type=click.UNPROCESSED)
def command(
    data: Path, to_controllers: bool, kafka_version: str, name: str, arguments: tuple[str, ...]
) -> None:
    """Run one of Kafka's own tools, with the arguments that Kafka's manual gives.

    It gets --bootstrap-server for the brokers of `kafka up`, unless ARGUMENTS names an address.
    With --controllers it gets --bootstrap-controller. It shows the administrator's certificate,
    unless ARGUMENTS names a file of settings.
    """
    try:
        check_known(name)
        words = list(arguments)
        if not names_a_cluster(name, words):
            option = config_option(name, kafka_version)
            found = _address(data, option, words, to_controllers=to_controllers)
            words = with_address(name, words, found)
        java = java_for_kafka()
        jars = kafka_jars(kafka_version, wanted=TOOLS, say=lambda text: say(text, err=True))
        whole = KafkaTools(jars, java, default_cache()).command(name, words)
    except (KafkaError, LocalClusterError) as error:
        raise Failure(str(error)) from None
    # Our own process becomes the tool, so that signals and the terminal are the tool's.
    os.execv(whole[0], whole)  # noqa: S606 - the user's own Java


def _address(folder: Path, option: str, words: list[str], *, to_controllers: bool) -> list[str]:
    """Return the options with which a tool finds the cluster. Raises LocalClusterError.

    `option` takes the file of settings.
    """
    part = find_kafka(folder)
    shown = [] if names_settings(words) else [option, part.admin_properties]
    if to_controllers:
        return ["--bootstrap-controller", part.controllers, *shown]
    return ["--bootstrap-server", part.bootstrap, *(shown if part.certificates else [])]
