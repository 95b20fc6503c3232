"""Delegation tokens: Create, Renew, Expire and Describe, as our routes of tokens (KIP-48).

Kafka names a token by its HMAC; our routes name it by its id, and `-` stands for the token of the
HMAC in the message. A response to DescribeDelegationToken has no HMAC: only the creation shows it.
"""

from typing import Any, Final

from kafka_listener.admin.admin_call import AdminCall
from kafka_listener.asking.in_steps import each
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Fields, KafkaFailure, Steps
from metadata.messages import (
    ChangeTokenReply,
    CreateTokenReply,
    CreateTokenRequest,
    ExpireTokenRequest,
    ListTokensReply,
    RenewTokenRequest,
    TokenDescription,
)

_OF_THIS_HMAC: Final = "-"
_HMAC_MAX: Final = 128
_WITH_REQUESTER: Final = 3
_BY_DELEGATION: Final = "delegation-token"
"""The method of a caller that logged in with a token; see `serving/logins.py`."""


def create_delegation_token(call: AdminCall) -> Steps:
    """CreateDelegationToken (38)."""
    _no_token_logged_in(call)
    fields = call.fields
    owner = None
    if fields.get("OwnerPrincipalName"):
        owner = f"{fields.get('OwnerPrincipalType')}:{fields['OwnerPrincipalName']}"
    message = CreateTokenRequest(
        owner, (yield from each(_principal, fields["Renewers"])), fields["MaxLifetimeMs"]
    )

    def then(reply: CreateTokenReply) -> None:
        token = reply.token
        call.answer(
            {
                "ErrorCode": 0,
                "Hmac": reply.hmac,
                "IssueTimestampMs": token.issue_timestamp_ms,
                "ExpiryTimestampMs": token.expiry_timestamp_ms,
                "MaxTimestampMs": token.max_timestamp_ms,
                **_owned(call, token),
            }
        )

    call.change("POST", "/v1/tokens", message, CreateTokenReply, then)


def renew_delegation_token(call: AdminCall) -> None:
    """RenewDelegationToken (39)."""
    _no_token_logged_in(call)
    message = RenewTokenRequest(_hmac(call), call.fields["RenewPeriodMs"])
    _change(call, "renew", message)


def expire_delegation_token(call: AdminCall) -> None:
    """ExpireDelegationToken (40)."""
    _no_token_logged_in(call)
    message = ExpireTokenRequest(_hmac(call), call.fields["ExpiryTimePeriodMs"])
    _change(call, "expire", message)


def _change(call: AdminCall, what: str, message: RenewTokenRequest | ExpireTokenRequest) -> None:
    def then(reply: ChangeTokenReply) -> None:
        call.answer({"ErrorCode": 0, "ExpiryTimestampMs": reply.expiry_timestamp_ms})

    call.change("POST", f"/v1/tokens/{_OF_THIS_HMAC}/{what}", message, ChangeTokenReply, then)


def _hmac(call: AdminCall) -> bytes:
    hmac: bytes = call.fields["Hmac"]
    if len(hmac) > _HMAC_MAX:
        raise KafkaFailure(KafkaCode.DELEGATION_TOKEN_NOT_FOUND, "no token has such a long HMAC")
    return hmac


def describe_delegation_token(call: AdminCall) -> Steps:
    """DescribeDelegationToken (41): of these owners, or of all without a list."""
    owners = call.fields["Owners"]
    wanted = None if owners is None else frozenset((yield from each(_principal, owners)))

    def then(pages: list[ListTokensReply]) -> None:
        tokens = (
            {
                **_owned(call, token),
                "IssueTimestamp": token.issue_timestamp_ms,
                "ExpiryTimestamp": token.expiry_timestamp_ms,
                "MaxTimestamp": token.max_timestamp_ms,
                "Renewers": [_parts(renewer) for renewer in token.renewers],
            }
            for page in pages
            for token in page.tokens
            if wanted is None or token.owner in wanted
        )
        call.answer({"ErrorCode": 0, "Tokens": tokens})

    call.read_all("/v1/tokens", ListTokensReply, then)


def _owned(call: AdminCall, token: TokenDescription) -> dict[str, Any]:
    """Return a token's id, its owner, and in newer versions who asked for it."""
    found = {"TokenId": token.token_id, **_parts(token.owner)}
    if call.version >= _WITH_REQUESTER:
        requester = _parts(token.requester)
        found["TokenRequesterPrincipalType"] = requester["PrincipalType"]
        found["TokenRequesterPrincipalName"] = requester["PrincipalName"]
    return found


def _principal(fields: Fields) -> str:
    return f"{fields['PrincipalType']}:{fields['PrincipalName']}"


def _parts(principal: str) -> dict[str, str]:
    kind, _, name = principal.partition(":")
    return {"PrincipalType": kind, "PrincipalName": name}


def _no_token_logged_in(call: AdminCall) -> None:
    """Refuse a caller that logged in with a token, as Kafka does. Raises KafkaFailure.

    Otherwise whoever steals a token could renew it for ever.
    """
    if call.request.caller.method == _BY_DELEGATION:
        raise KafkaFailure(
            KafkaCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "a client that logged in with a delegation token can't ask for tokens",
        )
