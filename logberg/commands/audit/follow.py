"""`logberg audit follow`: the log as it grows."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click

from audit.places.replicas import one_replica, open_replicas
from audit.questions.names import Names
from audit.questions.search import Filter, FoundRecord, Matcher, first_offset, quiet_place
from audit.reading.follow import follow_batches
from audit.reading.settling import SETTLED, Logged, settled
from ledger.batch import Batch
from logberg.cli.interrupt import noting_interrupt
from logberg.cli.output import output_option, say
from logberg.commands.audit.failures import failing, where_argument
from logberg.commands.audit.followed_people import FollowedPeople, people_followed
from logberg.commands.audit.opening_option import cluster_key_option
from logberg.commands.audit.record_output import RecordPrinter
from logberg.commands.audit.search_options import show_secrets_option, who_and_what_options


@click.command("follow")
@where_argument
@click.option("--from", "from_", metavar="MOMENT", help="Begin here. [default: with new records]")
@click.option(
    "--until-offset", type=click.IntRange(min=0), help="Stop when the log reaches this offset."
)
@who_and_what_options
@click.option(
    "--interval",
    type=click.FloatRange(min=0.05),
    default=0.5,
    show_default=True,
    help="Seconds between two reads of the log.",
)
@show_secrets_option
@cluster_key_option
@output_option
def command(
    where: str,
    from_: str | None,
    until_offset: int | None,
    principal: str | None,
    operation: str | None,
    resource: tuple[str, ...],
    interval: float,
    show_secrets: bool,
    cluster_key: Path | None,
    output: str,
) -> None:
    """Print changes when they take effect, until Ctrl-C.

    The nodes may stop and start meanwhile. Of several controllers, the command reads the one that
    is ahead. It prints a transaction when the transaction ends, and only a note if it was aborted.
    With --output json each record is one line.
    """
    wanted = Filter(principal=principal, operation=operation, resources=resource)
    printer = _Printer(show_secrets=show_secrets, as_json=output == "json")
    try:
        with failing():
            replica = one_replica(where)
            reader = replica.reader()
            start = reader.log_end if from_ is None else first_offset(reader, from_)
            people = people_followed(cluster_key, replica, reader, time.monotonic)
            begin, names = quiet_place(replica, reader, start)
            with noting_interrupt() as look:

                def pause() -> None:
                    time.sleep(interval)
                    look()

                replicas = open_replicas(where)
                batches = follow_batches(replicas, begin, pause=pause, until=until_offset)
                _show(_each(batches, look), start, _Asked(wanted, people, names), printer)
    except KeyboardInterrupt:
        return


def _each(batches: Iterable[Batch], look: Callable[[], None]) -> Iterator[Batch]:
    for batch in batches:
        look()
        yield batch


class _Asked:
    """What is asked, about people as the log ties them to pseudonyms so far."""

    def __init__(self, wanted: Filter, people: FollowedPeople, names: Names) -> None:
        self._wanted = wanted
        self._people = people
        self._names = names
        self.opener = people.opener()
        self._matcher = self._new_matcher()

    def learn(self, logged: Logged) -> None:
        """Learn from a record. The caller passes each one in order, before it is shown."""
        self._names.learn(logged.record)
        self._people.learn(logged)

    def find(self, logged: Logged) -> FoundRecord | None:
        """Return the record if it matches, else None."""
        opener = self._people.opener()
        if opener is not self.opener:
            self.opener = opener
            self._matcher = self._new_matcher()
        return self._matcher.find(logged)

    def _new_matcher(self) -> Matcher:
        return Matcher(self._people.with_pseudonyms(self._wanted), self._names)


def _show(batches: Iterable[Batch], start: int, asked: _Asked, printer: "_Printer") -> None:
    """Print what settles at or after `start`; earlier batches give names, maybe a transaction."""
    for logged in settled(batches):
        asked.learn(logged)
        if logged.outcome != SETTLED:
            if logged.offset >= start:
                printer.note(logged.offset, logged.outcome)
        elif max(logged.offset, logged.settled_base or 0) >= start:
            found = asked.find(logged)
            if found is not None:
                printer.opener = asked.opener
                printer.show(found)


class _Printer(RecordPrinter):
    """Also prints a note for a transaction that doesn't count."""

    _noted = -1

    def note(self, offset: int, outcome: str) -> None:
        """Take one of its records; the first one prints a note on stderr."""
        if offset != self._noted + 1:
            say(f"note: a transaction at offset {offset} is {outcome}: it doesn't count", err=True)
        self._noted = offset
