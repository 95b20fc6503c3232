"""Looks up the passwords that an apply has to set, and salts them.

Rule: only a credential that the plan creates or rewrites needs its password. The salt follows from
the request id: a request that is sent again with the same id must be the same.
"""

import os
from collections.abc import Iterable, Mapping

import msgspec

from logberg.cli.failure import Failure
from logberg.client.salting import salt_for, salted_password
from logberg.declared.declaration import DeclaredPassword, Key
from metadata.messages.declared import (
    DEFAULT_ITERATIONS,
    ApplyRequest,
    DeclaredCredential,
    PlannedItem,
)


def with_passwords(
    request: ApplyRequest,
    sources: Mapping[Key, DeclaredPassword],
    planned: Iterable[PlannedItem],
    request_id: str,
) -> ApplyRequest:
    """Return the request with the credentials that the plan sets. Raises Failure."""
    names = {item.name for item in planned if item.kind == "user" and item.action != "remove"}
    users = tuple(
        _with_password(user, sources[key], request_id) if key[1] in names else user
        for user in request.users
        for key in [("user", f"{user.name} {user.mechanism}")]
    )
    return msgspec.structs.replace(request, users=users)


def _with_password(
    user: DeclaredCredential, source: DeclaredPassword, request_id: str
) -> DeclaredCredential:
    iterations = DEFAULT_ITERATIONS if user.iterations is None else user.iterations
    if not 1 <= iterations <= 1_000_000:
        raise Failure(f"{source.where}: iterations: give 4096 to 16384")
    salt = salt_for(request_id, f"{user.name} {user.mechanism}")
    salted = salted_password(user.mechanism, _password(user, source), salt, iterations)
    return msgspec.structs.replace(user, salt=salt, salted_password=salted)


def _password(user: DeclaredCredential, source: DeclaredPassword) -> str:
    where, wanted = source.where, source.password
    if wanted is None:
        raise Failure(
            f"{where}: password: user {user.name!r} has no {user.mechanism} credential yet, or it "
            "is to be rewritten: say where the password comes from, such as "
            "`password: {env: PASSWORD}`"
        )
    if wanted.env is not None:
        password = os.environ.get(wanted.env, "")
        if not password:
            raise Failure(
                f"{where}: password.env: the environment variable {wanted.env} is not set, or empty"
            )
        return password
    path = source.folder / str(wanted.file)
    try:
        with path.open(encoding="utf-8") as file:
            password = file.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{where}: password.file: {path} can't be read: {error}") from None
    if not password:
        raise Failure(f"{where}: password.file: the first line of {path} is empty")
    return password
