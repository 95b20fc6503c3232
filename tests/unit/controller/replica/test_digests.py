"""Different states are found at common offsets, however far a node lags; the majority decides."""

from controller.replica.digests import COARSE_KEPT, DigestComparison, StateMark, StateMarks

VOTERS = (1, 2, 3)


def mark(offset, state=0):
    return StateMark(offset, b"c" * 32, offset + state, 7)


def node(node_id, ends, *, wrong_from=None):
    marks = StateMarks()
    comparison = DigestComparison(node_id, marks)
    for end in ends:
        marks.note(mark(end, 1 if wrong_from is not None and end >= wrong_from else 0))
    return marks, comparison


def exchange(nodes):
    for i, (_, comparison) in nodes.items():
        for j, (marks, _) in nodes.items():
            if i != j:
                comparison.on_digest(j, marks.encode())


def test_equal_states_are_equal():
    nodes = {i: node(i, range(5, 3000, 5)) for i in VOTERS}
    exchange(nodes)
    assert all(c.verdict(VOTERS) == "" and c.differing() == () for _, c in nodes.values())


def test_the_one_that_differs_from_the_majority_says_so_and_the_others_go_on():
    ends = range(5, 3000, 5)
    nodes = {1: node(1, ends), 2: node(2, ends, wrong_from=2990), 3: node(3, ends)}
    exchange(nodes)
    assert "majority" in nodes[2][1].verdict(VOTERS)
    assert nodes[1][1].verdict(VOTERS) == nodes[3][1].verdict(VOTERS) == ""
    assert nodes[1][1].differing() == (2,)


def test_two_that_differ_with_no_third_to_judge_both_say_so_until_it_comes():
    ends = range(5, 3000, 5)
    nodes = {1: node(1, ends), 2: node(2, ends, wrong_from=100)}
    exchange(nodes)
    assert "no third" in nodes[1][1].verdict(VOTERS)
    assert "no third" in nodes[2][1].verdict(VOTERS)
    nodes[3] = node(3, ends)
    exchange(nodes)
    assert nodes[1][1].verdict(VOTERS) == ""
    assert "majority" in nodes[2][1].verdict(VOTERS)


def test_who_was_wrong_once_is_wrong_for_good_and_knows_since_when():
    ends = range(5, 3000, 5)
    nodes = {1: node(1, ends), 2: node(2, ends, wrong_from=2990), 3: node(3, ends)}
    exchange(nodes)
    wrong = nodes[2][1].verdict(VOTERS)
    assert nodes[2][1].wrong
    assert nodes[2][1].agreed_at == 2985
    for marks, comparison in nodes.values():
        later = mark(3000)
        marks.note(later)
        comparison.on_mark(later)
    exchange(nodes)
    assert nodes[2][1].verdict(VOTERS) == wrong
    # Peers can't tell it from a restarted node with a sound state, so they no longer see it.
    assert nodes[1][1].differing() == ()
    assert not nodes[1][1].wrong


def test_a_few_that_agree_are_no_majority():
    ends = range(5, 300, 5)
    nodes = {1: node(1, ends), 2: node(2, ends), 3: node(3, ends, wrong_from=100)}
    exchange(nodes)
    assert nodes[1][1].verdict((1, 2, 3, 4, 5)) != ""
    assert nodes[1][1].verdict((1, 2, 3)) == ""


def test_lag_does_not_hide_a_difference():
    ends = range(7, 4_000_000, 7)
    behind = [e for e in ends if e < 2_000_000]
    for lagging_is_wrong in (True, False):
        ahead = node(1, ends, wrong_from=None if lagging_is_wrong else 1024)
        lagging = node(2, behind, wrong_from=1024 if lagging_is_wrong else None)
        exchange({1: ahead, 2: lagging})
        assert ahead[1].verdict(VOTERS) != ""
        assert lagging[1].verdict(VOTERS) != ""


def test_a_mark_that_a_peer_told_before_we_reached_it_is_compared_when_we_do():
    _, comparison = node(1, [10])
    ahead, _ = node(2, [10, 20], wrong_from=20)
    comparison.on_digest(2, ahead.encode())
    assert comparison.verdict(VOTERS) == ""
    comparison.on_mark(mark(20))
    assert comparison.verdict(VOTERS) != ""


def test_coarse_marks_are_the_first_batch_end_past_each_multiple_and_old_ones_go():
    marks, _ = node(1, range(1000, 10_000, 1000))
    assert marks.at_or_below(2047).offset == 2000
    lasting, _ = node(1, range(100, 1024 * (COARSE_KEPT + 100), 100))
    assert lasting.at(1100) is None
    kept = 1024 * 200
    first_end = -(-kept // 100) * 100
    assert lasting.at(first_end).offset == first_end
    assert lasting.at_or_below(first_end + 900).offset == first_end


def test_a_digest_fits_a_heartbeat():
    marks, _ = node(1, range(1000, 30_000_000, 1000))
    assert 300 < len(marks.encode()) <= 512


def test_bytes_of_another_format_say_nothing():
    _, comparison = node(1, [10])
    comparison.on_digest(2, b"")
    comparison.on_digest(2, b"\x02123")
    comparison.on_digest(2, b"\x01123")
    assert comparison.differing() == ()
