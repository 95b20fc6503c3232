"""The commands about users, entries and tokens, in order: each sees what those before it did.

They go to a real broker with an authorizer, at the listener of `users_front.py`. `user` says who
logs in; without one it is the administrator. `TOKEN` logs in with the delegation token that the
table made before, by whose HMAC later commands name it.
"""

from typing import Final, NamedTuple

ALICE, BOB, CAROL, TOKEN = "alice", "bob", "carol", "the token"
PASSWORDS: Final = {ALICE: "alice-secret", BOB: "bob-secret", CAROL: "carol-secret"}
HMAC: Final = "HMAC"
"""Stands for the token's secret."""
EXPIRES_MS: Final = 3_000


class UserCommand(NamedTuple):
    """One command."""

    words: str
    """The tool and its arguments, without the address and without the client's file."""
    user: str = ""
    fails: bool = False
    until: str = ""
    """What it prints once the broker knows what was changed; until then it is repeated."""


_USERS, _TOKENS = "kafka-configs --entity-type users", "kafka-delegation-tokens"
USER_COMMANDS: Final = (
    *(
        UserCommand(
            f"{_USERS} --entity-name {user} --alter "
            f"--add-config SCRAM-SHA-256=[iterations=8192,password={PASSWORDS[user]}]"
        )
        for user in (ALICE, CAROL)
    ),
    UserCommand(
        f"{_USERS} --entity-name {BOB} --alter --add-config "
        f"SCRAM-SHA-256=[iterations=8192,password={PASSWORDS[BOB]}],"
        f"SCRAM-SHA-512=[iterations=4096,password={PASSWORDS[BOB]}]"
    ),
    UserCommand(f"{_USERS} --entity-name {BOB} --describe", until="SCRAM-SHA-512"),
    UserCommand(f"{_USERS} --describe", until="user-principal 'carol'"),
    UserCommand("kafka-topics --create --topic orders --partitions 1 --replication-factor 1"),
    UserCommand("kafka-topics --list", user=BOB),
    UserCommand("kafka-acls --add --allow-principal User:bob --operation Describe --topic orders"),
    UserCommand("kafka-acls --list --topic orders", until="User:bob"),
    UserCommand("kafka-topics --list", user=BOB, until="orders"),
    UserCommand(
        f"{_TOKENS} --create --max-life-time-period -1 --renewer-principal User:alice", user=BOB
    ),
    UserCommand(f"{_TOKENS} --describe --owner-principal User:bob", user=BOB, until="User:alice"),
    UserCommand("kafka-topics --list", user=TOKEN, until="orders"),
    UserCommand(f"{_TOKENS} --create --max-life-time-period -1", user=TOKEN, fails=True),
    UserCommand(f"{_TOKENS} --renew --renew-time-period 3600000 --hmac {HMAC}", user=ALICE),
    UserCommand(
        f"{_TOKENS} --renew --renew-time-period 3600000 --hmac {HMAC}", user=CAROL, fails=True
    ),
    UserCommand(f"{_TOKENS} --expire --expiry-time-period {EXPIRES_MS} --hmac {HMAC}", user=BOB),
    UserCommand("kafka-topics --list", user=TOKEN, fails=True, until="Authentication failed"),
    UserCommand(
        f"{_TOKENS} --describe --owner-principal User:bob", user=BOB, until="number of tokens : 0"
    ),
    UserCommand(
        f"{_TOKENS} --renew --renew-time-period 3600000 --hmac {HMAC}", user=ALICE, fails=True
    ),
)
