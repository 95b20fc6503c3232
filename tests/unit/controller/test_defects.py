"""A defect in one decision must not silence the leader: the HTTP shell outlives it."""

from controller.proposer import Decision
from ledger.batch import Provenance
from tests.unit.controller.cluster import Cluster


def test_a_decision_with_a_defect_does_not_hold_up_those_behind_it():
    cluster = Cluster()
    cluster.online(1)
    outcomes, raised = [], []

    def fail(_image):
        raise ZeroDivisionError("planted")

    def submit():
        decision = Decision(fail, Provenance(operation="Defect"), outcomes.append)
        try:
            cluster.leader._proposer.submit(decision)
        except ZeroDivisionError as error:
            raised.append(error)

    cluster.processes[1].run(submit)
    assert raised
    assert outcomes[0].code.value == "UNKNOWN_SERVER_ERROR"
    cluster.create_topic("after", factor=1)
    cluster.assert_equal()
