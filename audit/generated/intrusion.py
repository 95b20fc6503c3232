"""An intrusion: a stolen token grants its thief everything, at night; found and undone.

Rule: it is what an auditor must find by the address, the hour and the operations; nothing marks it.
"""

from collections.abc import Callable

from audit.generated.people import SECURITY, Actor
from audit.generated.rhythm import DAY_MS, HOUR_MS, MINUTE_MS, moment
from audit.generated.security import Security
from audit.generated.stage import Stage

_THIEF = Actor("User:connect", "token", "10.9.77.3", "curl")
_FRIEND = "User:mallory"


def intrusion(stage: Stage, security: Security, then: Callable[[], None]) -> None:
    """Wait for the night; then the thief comes, and hours later somebody finds out."""
    night_ms = (stage.now_ms // DAY_MS + 1) * DAY_MS + 3 * HOUR_MS
    begun: list[tuple[int, int]] = []

    def come() -> None:
        begun.append((stage.offset, stage.now_ms))
        for kind, name in (("CLUSTER", "kafka-cluster"), ("TOPIC", "*")):
            security.allow(_THIEF, _FRIEND, (kind, name), ("ALL",), "", "LITERAL")
        stage.after(MINUTE_MS, lambda: security.set_password(_THIEF, "mallory"))
        stage.after(5 * HOUR_MS, found)

    def found() -> None:
        security.revoke_all_of(SECURITY, _FRIEND, "nobody knows this user: incident 77")
        sentence = (
            f"{moment(begun[0][1])}: connect's token was used from {_THIEF.address} to give "
            f"{_FRIEND} all rights; dave found out five hours later."
        )
        stage.tell_since("intrusion", f"acl:{_FRIEND}", begun[0], _THIEF.principal, sentence)
        then()

    stage.after(night_ms - stage.now_ms, come)
