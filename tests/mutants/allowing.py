"""Mutants of who may do what: when it is judged, what lists show, whose credentials count."""

from collections.abc import Callable
from typing import Any

from controller.access.watch_rights import EVERYTHING
from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, around, edited, gives, instead

RIGHTS = searched_in("cluster", "rights")
_GUARD = "controller.access.guard"
_ANSWERING = "controller.http.answering"
_CHECKS = "controller.http.access_checks.AccessChecks"


def _unjudged(_self: Any, _route: Any, _call: Any, then: Callable[[], None]) -> None:
    then()


def _undecided(decide: Any, _access: Any) -> Any:
    return decide


def _no_client(wanted: Any, *arguments: Any) -> Any:
    found = yield from wanted(*arguments)
    return found._replace(client=None)


ALLOWING = (
    Mutant(
        "rights are judged when a request arrives, and not again",
        "R1",
        "A change that waits is decided by entries that are gone.",
        (
            Patch(f"{_ANSWERING}.route_answers.if_allowed", instead(_undecided)),
            Patch(f"{_ANSWERING}.broker_answers.if_allowed", instead(_undecided)),
            Patch("controller.http.fetch_asker.if_allowed", instead(_undecided)),
            Patch("controller.http.transferring.if_allowed", instead(_undecided)),
        ),
        RIGHTS,
    ),
    Mutant(
        "rights are not judged when a request arrives",
        "R2",
        "An old answer is recalled, and a list is shown, for whom nothing allows it any more.",
        (Patch(f"{_CHECKS}.when_allowed", instead(_unjudged)),),
        RIGHTS,
    ),
    Mutant(
        "an answer leaves by the rights of its request's arrival",
        "R2",
        "Who waits long enough is told what nothing allows it any more.",
        (Patch(f"{_CHECKS}._refused_when_answered", gives(None)),),
    ),
    Mutant(
        "a standby carries out what nobody has judged",
        "R2",
        "What a standby answers itself is judged by nobody when it arrives.",
        (
            Patch(
                f"{_CHECKS}.when_allowed",
                edited(
                    (
                        "self._judge(call, access, self._node.replica.image, carry_out)",
                        "carry_out()",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "who was allowed once stays allowed",
        "R1",
        "A request isn't judged again by other entries than those that allowed it first.",
        (
            Patch(
                f"{_GUARD}.RequestAccess.steps",
                edited(("self._allowed_by is image.acls", "self._allowed_by is not None")),
            ),
        ),
        RIGHTS,
    ),
    Mutant(
        "a list shows everything",
        "R2",
        "Whoever is known sees all topics and configs.",
        (Patch(f"{_GUARD}.RequestAccess.list_filter", gives(None)),),
        RIGHTS,
    ),
    Mutant(
        "who may describe a topic reads all that the log says about it",
        "R2",
        "A watch shows entries, configs and who made a change to whoever may describe the topic.",
        (Patch("controller.http.call.rights_of_watcher", gives(EVERYTHING)),),
    ),
    Mutant(
        "anonymous callers get lists",
        "R2",
        "A list is filtered for callers without credentials, and not refused.",
        (
            Patch(
                f"{_GUARD}.RequestAccess._is_filtered",
                edited(("listing is not None and known and", "listing is not None and")),
            ),
        ),
    ),
    Mutant(
        "a route without an entry is open",
        "R2",
        "What declares no right needs none.",
        (
            Patch(
                f"{_GUARD}.RequestAccess._judged",
                edited(
                    ('return _refused(asker, self._route, "a right', 'return None and ("a right')
                ),
            ),
        ),
    ),
    Mutant(
        "a broker's credentials speak for every broker",
        "R2",
        "Which broker a request is of is not compared with the credentials.",
        (
            Patch(
                f"{_GUARD}.RequestAccess._judged",
                edited(("if broker_id is not None and", "if False and")),
            ),
        ),
    ),
    Mutant(
        "an agent shows every topic over HTTP",
        "R2",
        "The agent's metadata names topics that the caller may not describe.",
        (Patch("broker_agent.access.TopicAccess.shown_to", gives(None)),),
    ),
    Mutant(
        "an agent believes the name of a login",
        "R2",
        "Whoever holds a token is whom the login names.",
        (
            Patch(
                "kafka_listener.serving.passed_tokens.PassedPlainExchange.step",
                edited(("_principal_in(reply) or ANONYMOUS.principal", 'f"User:{user}"')),
            ),
        ),
    ),
    Mutant(
        "clients of different rights share an answer",
        "R2",
        "Kept answers of Metadata are found without regard to the client.",
        (Patch("kafka_listener.clients.metadata_answers._wanted", around(_no_client)),),
    ),
    Mutant(
        "a token that was revoked counts for ever at an agent",
        "R2",
        "What a controller said about a token is never asked again.",
        (
            Patch(
                "broker_agent.token_callers.TokenCallers._remember",
                edited(("now + KNOWN_S", "now + 1e9")),
            ),
        ),
    ),
)
