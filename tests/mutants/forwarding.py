"""Mutants of heartbeats that standbys take: rules of ADR 0048, as `Drop` in model/Leases.tla."""

from typing import Any

from controller.replica.contact_sender import Confirmed
from controller.replica.contacts import Word
from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives, instead

STANDBYS = searched_in("cluster", "standbys")


def _confirm_at_once(self: Any, _contact: Any, on_word: Any) -> None:
    on_word(Confirmed(self._leader().epoch, Word.ONLINE, 9_000))


FORWARDING = (
    Mutant(
        "a standby waits for no confirmation",
        "3, I19",
        "A standby answers a heartbeat by its own image, and the leader hears nothing of it.",
        (Patch("controller.replica.contact_sender.ContactSender.take", instead(_confirm_at_once)),),
        STANDBYS,
    ),
    Mutant(
        "what a standby forwards is confirmed and not noted",
        "3, I19",
        "The leader confirms contacts, and counts the brokers' silence as before.",
        (Patch("controller.leader.contact_taker.ContactTaker._note", gives(False)),),
        STANDBYS,
    ),
    Mutant(
        "a confirmation of another epoch counts",
        "3, I19",
        "A standby that knows a new leader takes the confirmation of the old one.",
        (
            Patch(
                "controller.replica.contact_sender.ContactSender.on_confirmed",
                edited(("confirmation.epoch != self._epoch", "False")),
            ),
        ),
        STANDBYS,
    ),
    Mutant(
        "a confirmation for another process counts",
        "3, I19",
        "A bulk of an earlier process of a standby confirms one of this process.",
        (
            Patch(
                "controller.replica.contact_sender.ContactSender.on_confirmed",
                edited((" or confirmation.life != self._life", "")),
            ),
        ),
        STANDBYS,
    ),
    Mutant(
        "a bulk of another epoch is taken",
        "3, I19",
        "A leader confirms in its epoch what was forwarded in an earlier one.",
        (
            Patch(
                "controller.leader.contact_taker.ContactTaker._is_ours",
                edited((" and bulk.epoch == self._proposer.epoch", "")),
            ),
        ),
        STANDBYS,
    ),
    Mutant(
        "a leader that stood still confirms contacts at once",
        "3, I19",
        "After a stall a leader confirms bulks before a majority has confirmed that it leads.",
        (
            Patch(
                "controller.leader.contact_taker.ContactTaker.take",
                edited(("if not self._leadership_check.holds(go_on):", "if True:")),
            ),
        ),
        STANDBYS,
    ),
    Mutant(
        "a bulk is read before the stall is found",
        "3, I19",
        "A leader that stood still takes bulks that came meanwhile before it looks at the clock.",
        (
            Patch(
                "controller.controller.Controller.on_contacts",
                edited(("self._leader.awake.notice()", "pass")),
            ),
        ),
        STANDBYS,
    ),
    Mutant(
        "a standby says the state of its own image",
        "3, I19",
        "A late standby tells a broker that it is online, which the leader said is fenced.",
        (
            Patch(
                "controller.http.fetch_replies.FetchReplies.confirmed",
                edited(
                    ("if said.word is Word.FENCED:", "if False:"),
                    ("elif said.word is Word.ONLINE and", "elif"),
                ),
            ),
        ),
        STANDBYS,
    ),
    Mutant(
        "a leader confirms as online whose fencing is decided",
        "3, I19",
        "The leader's word about a broker that it is fencing is what is committed.",
        (
            Patch(
                "controller.leader.contact_taker.ContactTaker._word",
                edited(("self._heartbeats.is_being_fenced(contact.broker_id) or ", "")),
            ),
        ),
        STANDBYS,
    ),
    Mutant(
        "what is held is not forwarded again at a new epoch",
        "3, I19",
        "A standby answers a held request by the word of a leader that it knows to be deposed.",
        (
            Patch(
                "controller.http.standby_fetch.StandbyFetch._answer",
                edited(("not self._sender.is_current(said.epoch)", "False")),
            ),
        ),
        STANDBYS,
    ),
    Mutant(
        "what is under way is not forwarded again at a new epoch",
        "11",
        "A standby that hears of a new leader forgets what it had forwarded to the old one.",
        (
            Patch(
                "controller.replica.contact_sender.ContactSender._follow_epoch",
                edited(("self._collected.extendleft(reversed(again))", "again.clear()")),
            ),
        ),
        STANDBYS,
    ),
    Mutant(
        "a standby names its own session",
        "3, I19",
        "A lease follows the standby's setting, which may be longer than the leader's.",
        (
            Patch(
                "controller.http.fetch_replies.FetchReplies.confirmed",
                edited(("said.session_ms", "int(self._config.session_s * 1000)")),
            ),
        ),
    ),
    Mutant(
        "an older release gets contacts",
        "11",
        "Contacts go out on links whose format has no such frame.",
        (
            Patch(
                "quorum.peers.contacts.Contacts._send",
                edited(("if replica.wire_format < CONTACTS_FORMAT:", "if False:")),
            ),
        ),
    ),
    Mutant(
        "an order of a standby to leave is obeyed",
        "3, 11",
        "An agent ends because a standby says so, which may be late.",
        (
            Patch(
                "broker_agent.fetch_loop.FetchLoop._on_error",
                edited(("if self._is_standby(url):", "if False:")),
            ),
        ),
        STANDBYS,
    ),
)
