"""Mutants of the rules about clients: entries, quotas, credentials, tokens, producer ids."""

from collections.abc import Callable
from typing import Any

from metadata.sealing import Sealed
from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, around, edited, gives

CLIENTS = searched_in("cluster", "clients")


def _in_clear(seal: Callable[..., Any], self: Any, place: str, secret: bytes, dice: bytes) -> Any:
    return Sealed(secret, seal(self, place, secret, dice).salted_hash)


def _authorize(*changes: tuple[str, str]) -> tuple[Patch, ...]:
    """The route of a check has imported the function by its name."""
    places = ("metadata.acl_rules", "controller.http.clients.acls")
    return tuple(Patch(f"{place}.authorize", edited(*changes)) for place in places)


CLIENT_RULES = (
    Mutant(
        "a denying entry is not looked for",
        "S1",
        "An entry that allows decides, whatever denies.",
        _authorize(("if denied is not None", "if False")),
    ),
    Mutant(
        "a denied READ denies DESCRIBE",
        "S1",
        "What implies an operation counts for entries that deny, too.",
        _authorize(
            ("AclPermissionType.DENY, (action.operation,))", "AclPermissionType.DENY, _DESCRIBING)")
        ),
    ),
    Mutant(
        "prefixes are not looked for",
        "S1",
        "Only literal names and the wildcard are looked up.",
        (Patch("metadata.acl_rules._patterns", edited(("range(len(name), 0, -1)", "range(0)"))),),
    ),
    Mutant(
        "an entry for one name allows every name that begins so",
        "S1",
        "A list or watch of a range of names is allowed by an entry for one name in it.",
        (Patch("metadata.acl_rules._reaches_below", gives(True)),),
    ),
    Mutant(
        "entries for a resource don't close it",
        "S1",
        "Where no entry matches, the setting decides even if the resource has entries.",
        _authorize(
            (
                'allowed=False, reason="no entry matches"',
                'allowed=policy.allow_if_no_acl, reason="no entry"',
            )
        ),
    ),
    Mutant(
        "a range of addresses matches nobody",
        "S1",
        "The host 10.0.0.0/8 is a text like any other, so an entry that denies it denies nothing.",
        (
            Patch(
                "metadata.image.acls.AclsDelta._count_range",
                edited(("if found is None:", "if True:")),
            ),
        ),
    ),
    Mutant(
        "a range of addresses is not checked",
        "S1",
        "Any text with a slash is taken for a range.",
        (
            Patch(
                "controller.managers.clients.acls.checked_content",
                edited(("if is_range(entry.host) and", "if False and")),
            ),
        ),
    ),
    Mutant(
        "an entry that is removed is still found",
        "S1",
        "The derived map of contents keeps what is gone.",
        (
            Patch(
                "metadata.image.acls.AclsDelta.remove_entry",
                edited(("self._by_content.remove(content)", "pass")),
            ),
        ),
        CLIENTS,
    ),
    Mutant(
        "reading does not allow describing",
        "S1",
        "Only DESCRIBE itself and ALL allow DESCRIBE.",
        _authorize(("_ALLOWING.get(action.operation, (action.operation,))", "(action.operation,)")),
    ),
    Mutant(
        "a super user can be denied",
        "S1",
        "Super users are not asked about first.",
        _authorize(("if action.principal in policy.super_users:", "if False:")),
    ),
    Mutant(
        "the widest entry is named",
        "S1",
        "An answer names the entry for all resources, though a narrower one decided.",
        _authorize(("where = _Where(patterns,", "where = _Where(patterns[::-1],")),
    ),
    Mutant(
        "a range of addresses below its feature level",
        "S1",
        "An entry with a range is written where old controllers read the log.",
        (Patch("controller.managers.clients.acls._check_level", gives(None)),),
    ),
    Mutant(
        "the default user's quota goes first",
        "S1",
        "A user's own quota is hidden by that of all users.",
        (
            Patch(
                "metadata.quota_rules.precedence",
                edited(("(_named(user), _default(user))", "(_default(user), _named(user))")),
            ),
        ),
    ),
    Mutant(
        "one entity's quotas hide those of all others",
        "S1",
        "Only the first entity that has a quota is looked at, whatever its key.",
        (
            Patch(
                "controller.http.clients.quotas.resolve",
                edited(
                    (
                        "found.setdefault(key, Applied(value, entity))",
                        "found.setdefault(key, Applied(value, entity))\n        if found: break",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "the client id's quota goes before the user's",
        "S1",
        "An entity of a client id alone hides that of the user.",
        (
            Patch(
                "metadata.quota_rules.precedence",
                edited(
                    (
                        "yield ((USER, of_user),)",
                        "yield from (((CLIENT_ID, (client_id or '',)),), ((USER, of_user),))",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "an address is combined with a user",
        "S2",
        "The combination of types is not checked.",
        (
            Patch(
                "controller.managers.clients.quotas.check_entity",
                edited(("if len(kinds) > 1", "if False")),
            ),
        ),
    ),
    Mutant(
        "credentials lie in clear",
        "S3",
        "The stored key and the server key are written as they are.",
        (Patch("metadata.sealing.ClusterKey.seal", around(_in_clear)),),
        CLIENTS,
    ),
    Mutant(
        "an agent's port gives out secrets",
        "S3",
        "The routes for the host are answered to any caller, not only on the host's socket.",
        (Patch("broker_agent.host_api._check_caller", gives(None)),),
    ),
    Mutant(
        "an agent that may not serve opens secrets",
        "S3",
        "A credential is opened from an image that may be old.",
        (Patch("broker_agent.host_api.HostApi._check_serving", gives(None)),),
    ),
    Mutant(
        "the digest of a credential's request is not keyed",
        "S3",
        "A password can be guessed with the request's digest, which the log keeps.",
        (
            Patch(
                "controller.managers.clients.scram.ScramManager.meaning",
                edited(
                    (
                        "return request_digest(self._key, canonical(request))",
                        "return canonical(request)",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "an apply writes what isn't refused",
        "D3",
        "A refused item keeps back only itself.",
        (
            Patch(
                "controller.managers.declared.plan.ApplyPlan.result",
                edited(
                    (
                        "records = [] if refused else [*self.records, *self.last_records]",
                        "records = [*self.records, *self.last_records]",
                    )
                ),
            ),
        ),
        CLIENTS,
    ),
    Mutant(
        "another plan than the confirmed one is made",
        "D3",
        "The digest of the plan that was confirmed is not compared.",
        (
            Patch(
                "controller.managers.declared.plan.ApplyPlan.result",
                edited(("if expected not in (None, plan) and not refused", "if False")),
            ),
        ),
    ),
    Mutant(
        "the digest of an apply is not keyed",
        "S3",
        "A password can be guessed with the digest of the apply that set it.",
        (
            Patch(
                "controller.managers.declared.apply.ApplyManager.meaning",
                edited(
                    (
                        "return scram.secret_meaning(canonical(request))",
                        "return canonical(request)",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "a password in a config lies in clear",
        "S3",
        "The level says that secret values are sealed, and they are written as they are.",
        (
            Patch(
                "controller.managers.config_secrets.ConfigSecrets.written",
                edited(("levels.get(LOGBERG_VERSION, 0) < SEALED_CONFIGS_FROM", "levels")),
            ),
        ),
        CLIENTS,
    ),
    Mutant(
        "the digest of a password's request is not keyed",
        "S3",
        "A password in a config can be guessed with the request's digest.",
        (
            Patch(
                "controller.managers.config_secrets.ConfigSecrets.meaning",
                edited(
                    (
                        'return self._key.mac("requests", canonical(request))',
                        "return canonical(request)",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "half of a user's changes are made",
        "S2",
        "A refused change of a user doesn't hold back the other ones.",
        (
            Patch(
                "controller.managers.clients.scram.ScramManager.alter",
                edited(
                    (
                        "done = [name for name in records if name not in errors]",
                        "done = list(records)",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "the log remembers a token's secret",
        "S4",
        "The remembered answer to a creation has the HMAC.",
        (
            Patch(
                "controller.managers.clients.tokens.TokenManager.create",
                edited(
                    (
                        "describe_token(record), dry_run=request.dry_run)",
                        "describe_token(record), token_hmac(self._enabled(), record.token_id))",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "a token's secret for who repeats a request id",
        "S4",
        "The caller is no part of what a request id is valid for.",
        (
            Patch(
                "controller.http.clients.tokens._meaning",
                edited(('requester.principal.encode() + b"\\0" + ', "")),
            ),
        ),
    ),
    Mutant(
        "any HMAC will do",
        "S4",
        "Who renews a token need not hold it.",
        (
            Patch(
                "controller.managers.clients.tokens.TokenManager._held",
                edited((" and hmac.compare_digest(token_hmac(key, each), given)", "")),
            ),
        ),
    ),
    Mutant(
        "anybody renews a token",
        "S4",
        "Neither the owner nor a renewer has to ask.",
        (Patch("controller.managers.clients.tokens._check_may_change", gives(None)),),
    ),
    Mutant(
        "a token's first expiry counts",
        "S4",
        "The order of expiries keeps the times before renewals.",
        (Patch("metadata.image.tokens.TokensDelta._forget_expiry", gives(None)),),
    ),
    Mutant(
        "each change of a token puts the sweep off",
        "S4",
        "The pause between sweeps begins again when tokens change.",
        (
            Patch(
                "controller.leader.token_expiry.TokenExpiry.look",
                edited(("self._swept_at + PAUSE_S - self._clock.monotonic()", "PAUSE_S")),
            ),
        ),
        CLIENTS,
    ),
    Mutant(
        "producer ids for who is not registered",
        "S5",
        "The broker epoch is not compared.",
        (
            Patch(
                "controller.http.clients.producer_ids.allocate",
                edited(("    registered(image, request.broker_id, request.broker_epoch)\n", "")),
            ),
        ),
    ),
    Mutant(
        "a block of producer ids twice",
        "S5",
        "A block begins where the one before it began.",
        (
            Patch(
                "controller.http.clients.producer_ids.allocate",
                edited(("AllocateProducerIdsReply(start, ", "AllocateProducerIdsReply(0, ")),
            ),
        ),
        CLIENTS,
    ),
    Mutant(
        "an agent gives the last id of a block twice",
        "S5",
        "The last id stays in the block until the next block comes.",
        (
            Patch(
                "broker_agent.producer_ids.ProducerIds.take",
                edited(("self._current[1:]", "self._current[1:] or self._current")),
            ),
        ),
        CLIENTS,
    ),
    Mutant(
        "a report of a directory that is applied late stays",
        "I17",
        "The agent does not compare the metadata with its last report.",
        (
            Patch(
                "broker_agent.directory_assignments.DirectoryAssignments._look",
                edited(("self._open[key] = None", "pass")),
            ),
        ),
    ),
    Mutant(
        "a client pays for what the cluster refused",
        "S2",
        "The client's bucket gets nothing back.",
        (
            Patch(
                "controller.leader.changes.Changes._charge",
                edited(("bucket.take(-partitions)", "pass")),
            ),
        ),
    ),
    Mutant(
        "a voter's registration is forgotten",
        "15",
        "Nobody has to say that it is meant.",
        (
            Patch(
                "controller.http.clients.controllers.unregister_controller",
                edited(("if controller_id in voters and not force", "if False")),
            ),
        ),
    ),
)
