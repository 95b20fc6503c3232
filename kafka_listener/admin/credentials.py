"""DescribeUserScramCredentials and AlterUserScramCredentials, as our routes of users (KIP-554).

Rule: no response shows a secret.
"""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from kafka_listener.admin.admin_call import AdminCall
from kafka_listener.asking.in_steps import distinct, each, for_each
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Fields, Steps
from metadata.messages import (
    AlterScramReply,
    AlterScramRequest,
    ListUsersReply,
    ScramDeletion,
    ScramUpsertion,
)
from metadata.messages.scram import MECHANISMS, UserDescription

_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {int(number): word for word, number in MECHANISMS.items()}
)


def describe_user_scram_credentials(call: AdminCall) -> None:
    """DescribeUserScramCredentials (50): of these users, or of all without a list."""
    users = call.fields["Users"]
    names = [user["Name"] for user in users or ()]

    def then(pages: list[ListUsersReply]) -> Steps:
        found: dict[str, list[dict[str, Any]]] = {}

        def note(user: UserDescription) -> None:
            found.setdefault(user.name, []).extend(
                {"Mechanism": MECHANISMS[one.mechanism], "Iterations": one.iterations}
                for one in user.credentials
            )

        yield from for_each(note, (user for page in pages for user in page.users))
        times = Counter(names)
        results = (
            _described(name, found.get(name), twice=times[name] > 1)
            for name in distinct(names or found)
        )
        call.answer({"Results": results, **call.result(None)})

    call.read_all("/v1/users", ListUsersReply, then)


def _described(
    name: str, credentials: list[dict[str, Any]] | None, *, twice: bool
) -> dict[str, Any]:
    if twice:
        code, why = KafkaCode.DUPLICATE_RESOURCE, f"user {name!r} is in the request twice"
    elif credentials is None:
        code = KafkaCode.RESOURCE_NOT_FOUND
        why = f"Attempt to describe a user credential that does not exist: {name}"
    else:
        return {"User": name, "ErrorCode": 0, "ErrorMessage": None, "CredentialInfos": credentials}
    return {"User": name, "ErrorCode": int(code), "ErrorMessage": why, "CredentialInfos": []}


def alter_user_scram_credentials(call: AdminCall) -> Steps:
    """AlterUserScramCredentials (51): for each user all changes are made, or none."""
    fields = call.fields
    message = AlterScramRequest(
        (yield from each(_upsertion, fields["Upsertions"])),
        (yield from each(_deletion, fields["Deletions"])),
    )
    if not message.upsertions and not message.deletions:
        call.answer({"Results": []})
        return

    def then(reply: AlterScramReply) -> None:
        results = ({"User": user.name, **call.result(user.error)} for user in reply.users)
        call.answer({"Results": results})

    call.change("POST", "/v1/users/scram", message, AlterScramReply, then)


def _upsertion(fields: Fields) -> ScramUpsertion:
    return ScramUpsertion(
        fields["Name"],
        _mechanism(fields["Mechanism"]),
        fields["Iterations"],
        fields["Salt"],
        fields["SaltedPassword"],
    )


def _deletion(fields: Fields) -> ScramDeletion:
    return ScramDeletion(fields["Name"], _mechanism(fields["Mechanism"]))


def _mechanism(number: int) -> str:
    """Return a mechanism's name. The route refuses one that does not exist, with a sentence."""
    return _WORDS.get(number, f"mechanism {number}")
