"""The texts of a recorded attempt name nobody, whoever wrote them."""

import msgspec
import pytest

from controller.managers.pseudonym_covering import Covering
from controller.people.hidden_names import without_names
from logberg.processes.principals import Principals
from metadata.people import USER
from metadata.pseudonyms import UNKNOWN
from runtime.http.requests import Caller, Reply
from runtime.sockets.attempts import Attempt
from runtime.sockets.credentials import PeerCertificate
from tests.unit.controller.erasure.test_addresses import attempts, bytes_of
from tests.unit.controller.people.people_bench import ALICE, BOB, NAME, guarded, with_people

PSEUDONYM = "p-gezdgnbvgy3tq"
MAIL, WINDOWS, ALL = "User:*@example.com", "User:CORP\\*", "User:*"


def hidden(text: str, pattern: str = MAIL, known: dict[str, str] | None = None) -> str:
    covering = Covering([pattern], ["User:root"])

    def recorded(principal: str) -> str:
        return UNKNOWN if covering.covers(principal) else principal

    return without_names(text, known or {}, recorded, covering.covers_word)


@pytest.mark.parametrize(
    ("pattern", "text", "left"),
    [
        (MAIL, f"no credential of {NAME} fits.", "no credential of p-unknown fits."),
        (MAIL, f"{ALICE} may not ask: it lacks", "User:p-unknown may not ask: it lacks"),
        (MAIL, f"denied to {ALICE}, and {BOB}.", "denied to User:p-unknown, and User:p-unknown."),
        (MAIL, f"the certificate names 'user://c/{NAME}', but", "the certificate names '…', but"),
        (MAIL, f"it names {NAME[:7]!r}, can't be", "it names '…', can't be"),
        (MAIL, "it isn't \"o'hara@example", 'it isn\'t "…"'),
        (MAIL, f"the settings' grant of 'User:{PSEUDONYM}'", None),
        (MAIL, "GET /v1/users/alice%40example.com", "GET /v1/users/p-unknown"),
        (MAIL, f"GET /v1/nothing/{NAME}?x", "GET /v1/nothing/p-unknown?x"),
        (MAIL, "User:carol may not list tokens: it's a viewer's", None),
        (WINDOWS, "for User:CORP\\alice: no", "for User:p-unknown: no"),
        (WINDOWS, f"for {'User:CORP' + chr(92) + 'alice'!r}: no", "for '…': no"),
        (ALL, "User:zed may not delete topics", "User:p-unknown may not delete topics"),
        (ALL, "User:root may not delete topics", None),
        (ALL, "GET /v1/users/zed", "GET /v1/users/p-unknown"),
    ],
)
def test_a_text_names_nobody_and_says_the_rest(pattern: str, text: str, left: str | None) -> None:
    assert hidden(text, pattern) == (text if left is None else left)
    assert hidden(hidden(text, pattern), pattern) == hidden(text, pattern)


def test_names_of_the_request_become_their_pseudonyms_and_parts_of_words_stay() -> None:
    known = {"al": "p-1", "al ice@x": "p-2", "a/b": "p-3"}
    text = "User:al may not also GET /v1/users/a%2Fb for User:al ice@x"
    assert hidden(text, known=known) == "User:p-1 may not also GET /v1/users/p-3 for User:p-2"


def noted(cluster, attempt):
    """Have a controller note an attempt, and return the record of it."""
    cluster.processes[1].run(lambda: cluster.controllers[1].note_attempt(attempt))
    cluster.run(3)
    [found] = attempts(cluster)
    return found


def test_a_certificate_of_another_cluster_leaves_no_name_in_the_log():
    cluster = guarded(attempts_interval_s=0.2)
    shown = PeerCertificate(f"user://another-cluster/{NAME}")
    reply = Principals("this-cluster").authenticate(shown, None, None, "10.0.0.9")
    assert isinstance(reply, Reply)
    why = msgspec.json.decode(reply.body)["message"]
    code, route = "UNAUTHENTICATED", "GET /v1/topics"
    attempt = Attempt("", "", "", "", "10.0.0.9", code, why, request=route, answer=why)
    assert noted(cluster, attempt).reason.startswith("the certificate names '…', but")
    assert NAME.encode() not in bytes_of(cluster)


@pytest.mark.parametrize("name", ["CORP\\alice", "CORP\\" + "a" * 120])
def test_a_claim_for_somebody_leaves_no_name_in_the_log(name):
    cluster = guarded(pseudonyms=(WINDOWS,), attempts_interval_s=0.2)
    claim = {"x-logberg-on-behalf-of": USER + name}
    carol = Caller("User:carol", "token", "10.0.0.7")
    assert cluster.ask("GET", "/v1/topics/x", caller=carol, headers=claim)[0] == 403
    cluster.run(3)
    [found] = attempts(cluster)
    assert found.principal == "User:carol"
    assert b"alice" not in bytes_of(cluster)
    assert b"aaaaa" not in bytes_of(cluster)


def test_names_in_a_message_leave_no_name_in_the_log():
    """The refusal names the owner, and a name with a blank has no end that a text shows."""
    cluster = with_people(attempts_interval_s=0.2)
    owner = "User:Bob of Accounts@example.com"
    body = {"owner": owner, "renewers": []}
    carol = Caller("User:carol", "token", "10.0.0.7")
    status, reply = cluster.ask("POST", "/v1/tokens", body, caller=carol)
    assert (status, owner in reply["message"]) == (403, True)
    cluster.run(3)
    [found] = attempts(cluster)
    assert found.reason.startswith(f"User:carol may not make tokens for {UNKNOWN}: ")
    assert b"Accounts" not in bytes_of(cluster)
