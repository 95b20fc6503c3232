"""Mutants of erasure: what is destroyed, where, when keys may be used, and who knows of it."""

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited

_SEEDS = searched_in("cluster", "erasures")

ERASING = (
    Mutant(
        "a destroyed key can be made of what is above it",
        "I27",
        "The secrets beside the path are kept, and so is the one that all of them follow from.",
        (
            Patch(
                "metadata.subject_keys._destroy",
                edited(("secrets.pop(leaf >> up, None)", "secrets.get(leaf >> up)")),
            ),
        ),
        _SEEDS,
    ),
    Mutant(
        "a key is destroyed in memory only",
        "I27",
        "The file of a tree is not written anew after an erasure.",
        (
            Patch(
                "controller.erasure.keeping.SubjectKeysKeeping._destroy",
                edited(("    self._write()", "    pass")),
            ),
        ),
        _SEEDS,
    ),
    Mutant(
        "keys are used before the image is current",
        "I27",
        "A controller that comes back opens what its own image has, erased elsewhere or not.",
        (
            Patch(
                "controller.erasure.keeping.SubjectKeysKeeping._act",
                edited(("if self._is_current():", "if True:")),
            ),
        ),
        _SEEDS,
    ),
    Mutant(
        "the log names a tree that one disk holds",
        "I27",
        "The leader does not wait until a majority has the tree.",
        (
            Patch(
                "controller.erasure.keeping.SubjectKeysKeeping._name_if_held",
                edited(("2 * len(self._holders & voters) <= len(voters)", "not self._holders")),
            ),
        ),
        _SEEDS,
    ),
    Mutant(
        "an erased user comes back under the destroyed key",
        "I27",
        "A subject has one number for ever.",
        (
            Patch(
                "controller.managers.sealing_key.current_number",
                edited(
                    (
                        "while image.erasures.has(number := key.number_of(subject, times)):",
                        "while image.erasures.has(number := key.number_of(subject, times)) and 0:",
                    )
                ),
            ),
        ),
        _SEEDS,
    ),
    Mutant(
        "an erasure leaves the credentials",
        "I27",
        "The key goes, and the image keeps a credential that nobody can open.",
        (
            Patch(
                "controller.managers.clients.erasure.ErasureManager._user_erased",
                edited(
                    (
                        "ControllerResult((*removed, erased), reply)",
                        "ControllerResult((erased,), reply)",
                    )
                ),
            ),
        ),
        _SEEDS,
    ),
    Mutant(
        "digests of requests outlast an erasure",
        "I27",
        "Who has the digest and its key tests guesses of the erased password.",
        (
            Patch(
                "controller.managers.clients.erasure.ErasureManager._user_erased",
                edited(
                    (
                        "(current_number(key, image, subject), key.requests_number())",
                        "(current_number(key, image, subject),)",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "a salt can be made again after the erasure",
        "I27",
        "Nonces and salts of a subject's values follow from the cluster key alone.",
        (
            Patch(
                "metadata.sealing.ClusterKey.seal_for",
                edited(
                    (
                        'names = hmac.digest(key, b"logberg nonces and salts", "sha256")',
                        "names = self._names",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "a tree of keys opens values without the cluster key",
        "I27",
        "A block's cipher key is the subject's key.",
        (
            Patch(
                "metadata.sealing.ClusterKey._key_of",
                edited(
                    (
                        'hmac.digest(self._derived(b"values of subjects"), leaf, "sha256")',
                        "leaf",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "brokers go on reading across an erasure",
        "I27",
        "The log that Kafka's brokers fetch does not begin anew behind an erasure.",
        (
            Patch(
                "kafka_listener.quorum_requests.handlers.QuorumRequests.on_progress",
                edited(
                    (
                        "self._controller.image.erasures is not self._erasures",
                        "False",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "an agent keeps what was erased",
        "I27",
        "An agent destroys nothing in the tree that it has.",
        (
            Patch(
                "broker_agent.subject_keys.AgentSubjectKeys.on_metadata",
                edited(("keys is not None and changed", "False")),
            ),
        ),
        _SEEDS,
    ),
    Mutant(
        "an agent uses a late tree whole",
        "I27",
        "What was erased while the tree was on its way is not destroyed.",
        (
            Patch(
                "broker_agent.subject_keys.AgentSubjectKeys._on_answer",
                edited(("keys.without(_erased(image))", "keys")),
            ),
        ),
    ),
    Mutant(
        "a sealed text outlasts an erasure",
        "I27",
        "The leader uses the texts of addresses that it made before the erasure.",
        (
            Patch(
                "controller.managers.address_sealing.AddressSealer.sealed",
                edited(
                    ("if erasures is not image.erasures or tree", "if tree"),
                ),
            ),
        ),
        _SEEDS,
    ),
    Mutant(
        "equal texts show equal addresses for ever",
        "I27",
        "A day has no part in a sealed text.",
        (
            Patch(
                "controller.managers.address_sealing.AddressSealer._make",
                edited(('b"day %d" % day', 'b"a day"')),
            ),
        ),
    ),
    Mutant(
        "an address is in clear while keys are awaited",
        "I27",
        "The first moments of a cluster count as a level without keys.",
        (
            Patch(
                "controller.managers.address_sealing.AddressSealer.sealed",
                edited(("named is None and not may_have_keys(image, self._key)", "named is None")),
            ),
        ),
        _SEEDS,
    ),
    Mutant(
        "reports of attempts name the address",
        "I27",
        "Only the heads of batches are sealed.",
        (
            Patch(
                "controller.trail.writing.AttemptWriting.take",
                edited(
                    (
                        "report_attempts(image, records, self._sealer)",
                        "report_attempts(image, records)",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "the number of an address can be made again",
        "I27",
        "The key that numbers of addresses are made with outlasts the erasure of an address.",
        (
            Patch(
                "controller.managers.clients.erasure._address_erased",
                edited((", key.naming_number(image.erasures.addresses)]", "]")),
            ),
        ),
    ),
    Mutant(
        "the log's answer to an erasure names the address",
        "I27",
        "What the log remembers of a request has the subject.",
        (
            Patch(
                "controller.managers.clients.erasure._address_erased",
                edited(('EraseReply("", 0', "EraseReply(request.subject, 0")),
            ),
        ),
    ),
    Mutant(
        "an opener keeps addresses beyond an erasure",
        "I27",
        "What was opened once is shown again.",
        (
            Patch(
                "metadata.sealed_addresses.AddressOpener.look_at_keys",
                edited(("self._opened.clear()", "pass")),
            ),
        ),
    ),
    Mutant(
        "a sealed address is a new network each day",
        "I27",
        "A rule takes the text of a sealed address for a network.",
        (
            Patch(
                "audit.findings.acquaintances.SeenBefore._meet_caller",
                edited(("if is_sealed(caller.address):", "if False:")),
            ),
        ),
    ),
)
