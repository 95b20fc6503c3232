"""Writes docs/kafka/users.md: `python -m tests.kafka.tools.users_page`.

Rule: what stands on the page was printed by a run, on a cluster that this command starts. A command
that did not end as the table says makes the run fail, and the page stays as it is.
"""

import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from logberg.kafka.jars import DEFAULT_VERSION
from tests.kafka.broker_logins import client_by_scram
from tests.kafka.tools.page import UnexpectedEndError
from tests.kafka.tools.running import lasting
from tests.kafka.tools.user_commands import HMAC, PASSWORDS, TOKEN, USER_COMMANDS, UserCommand
from tests.kafka.users_front import UsersFront, users_front

PAGE: Final = Path(__file__).parents[3] / "docs" / "kafka" / "users.md"
_HEAD: Final = f"""# Users, entries and tokens at Kafka's brokers

A real broker of version {DEFAULT_VERSION} ran on three of our controllers. It has Kafka's
`StandardAuthorizer`, and a listener that demands SCRAM. Its users, ACLs and delegation tokens lie
in our log. Kafka's own tools asked the broker, one after another. Below is what each printed.

`SERVER` is the broker. A file such as `bob.properties` holds the login of this user, and
`token.properties` the login with the token that one of the commands made. What changes from run to
run (ids, secrets, times, ports) is left out, and so are stack traces.

The lines below are generated: `python -m tests.kafka.tools.users_page` runs the commands again.
"""
_TRIES: Final = 20
_MADE: Final = re.compile(r"^(\S+)\s+(\S{80,}=*)\s+User:", re.MULTILINE)
"""The line of a table that shows a new token: its id and its secret."""
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d|\w{3} \w{3} \d\d \d\d:\d\d:\d\d \w+ \d{4}")
_REFUSED: Final = re.compile(r"Exception|Error while executing")
Runs = Sequence[tuple[UserCommand, str]]


class _MadeToken:
    """The token that the table makes."""

    def __init__(self) -> None:
        self.id = self.hmac = "none yet"

    def see(self, printed: str) -> None:
        """Keep the id and the secret of a token that was just made."""
        if found := _MADE.search(printed):
            self.id, self.hmac = found[1], found[2]

    def hide(self, text: str) -> str:
        """Return a text without what differs from run to run."""
        text = text.replace(self.hmac, "…hmac…").replace(self.id, "…id…")
        return lasting(_DATE.sub("…date…", text))


def run_user_commands(
    front: UsersFront, commands: Sequence[UserCommand] = USER_COMMANDS
) -> Iterator[tuple[UserCommand, str]]:
    """Run the table; yield each command with what it printed. Raises UnexpectedEndError."""
    token = _MadeToken()
    for command in commands:
        printed = _until(front, command, token)
        if bool(_REFUSED.search(printed)) != command.fails or command.until not in printed:
            raise UnexpectedEndError(f"{command.words}\n{printed}")
        token.see(printed)
        yield command, token.hide(printed)


def _until(front: UsersFront, command: UserCommand, token: _MadeToken) -> str:
    for _ in range(_TRIES):
        printed = _once(front, command, token)
        if command.until in printed:
            break
        time.sleep(0.5)
    return printed


def _once(front: UsersFront, command: UserCommand, token: _MadeToken) -> str:
    name, *words = command.words.replace(HMAC, token.hmac).split()
    if command.user == TOKEN:
        folder = front.cluster.folder
        properties = str(client_by_scram(folder, token.id, token.hmac, token=True))
    else:
        properties = front.properties(command.user) if command.user else ""
    return front.tool(name, *words, properties=properties)


def page_of(runs: Runs) -> str:
    """Return the page's text."""
    parts = [_HEAD]
    for command, printed in runs:
        tool, _, words = command.words.partition(" ")
        config = "token" if command.user == TOKEN else command.user
        who = f" --command-config {config}.properties" if config else ""
        shown = f"\n{printed}" if printed else ""
        parts.append(f"\n```\n$ {tool} --bootstrap-server SERVER{who} {words}{shown}\n```\n")
    return "".join(parts)


def main(_arguments: Sequence[str]) -> int:
    """Start the cluster, run the table, and write the page."""
    with (
        tempfile.TemporaryDirectory(prefix="users-page-") as scratch,
        users_front(Path(scratch), PASSWORDS) as front,
    ):
        runs = list(run_user_commands(front))
    PAGE.write_text(page_of(runs), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
