"""Nobody logs in under a pseudonym, whichever way a controller judges the request."""

import pytest

from metadata.errors import LogbergError
from metadata.pseudonyms import check_own_name
from runtime.http.requests import Caller, Request
from tests.unit.controller.erasure.test_erasure import made

PSEUDONYM = "User:p-gezdgnbvgy3tq"


@pytest.mark.parametrize("method", ["certificate", "scram", "unix-socket", "of a host"])
@pytest.mark.parametrize("principal", [PSEUDONYM, "User:p-unknown"])
def test_a_name_of_this_form_is_refused(principal, method):
    with pytest.raises(LogbergError, match="has the form of a pseudonym"):
        check_own_name(principal, method)


@pytest.mark.parametrize(
    ("principal", "method"),
    [
        (PSEUDONYM, "token"),
        (PSEUDONYM, "delegation-token"),
        ("User:alice", "certificate"),
        ("User:p-alice", "certificate"),
        ("Broker:7", "scram"),
    ],
)
def test_others_are_let_in(principal, method):
    check_own_name(principal, method)


def test_what_kafka_s_listener_shows_of_rights_is_refused_too():
    cluster = made(nodes=1, authorization="on")
    asked = Request("", "", caller=Caller(PSEUDONYM, "certificate", "10.0.0.7"))
    with pytest.raises(LogbergError, match="has the form of a pseudonym"):
        cluster.leader.asker_rights(asked)
