"""Files of rules: what they change, and what is said of each mistake."""

import pytest

from audit.findings.rule_files import RuleError, builtin_rules, read_rules
from audit.findings.rules import Severity

GOOD = """
[payments_deleted]
severity = "critical"
kinds = ["topic_removed"]
subject = "topic:payments-*"
gather = "1h"
sentence = "{actor} deleted {subjects}."
"""


def test_every_builtin_rule_explains_itself() -> None:
    rules = builtin_rules().rules
    assert len(rules) >= 20
    assert all(rule.meaning and rule.advice for rule in rules)
    assert rules[0].severity == Severity.CRITICAL


def test_a_file_adds_changes_and_switches_off() -> None:
    text = f"{GOOD}\n[quotas_changed]\noff = true\n\n[brokers_flapping]\ncount = 7\n"
    rules = {rule.name: rule for rule in read_rules(text, "mine.toml").rules}
    assert rules["payments_deleted"].subject == ("topic:payments-*",)
    assert "quotas_changed" not in rules
    before = {rule.name: rule for rule in builtin_rules().rules}["brokers_flapping"]
    assert (rules["brokers_flapping"].count, before.count) == (7, 3)
    assert rules["brokers_flapping"].sentence == before.sentence


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[payments_deleted]", "[payments_deleted", "mine.toml: this is not TOML: "),
        ("[payments_deleted]", "[Payments]", "mine.toml, line 2: rule Payments: a name has small"),
        ('"critical"', '"urgent"', "line 3: rule payments_deleted, severity: 'urgent' is no"),
        ("topic_removed", "topic_deleted", "line 4: rule payments_deleted, kinds: 'topic_deleted'"),
        ("topic_removed", "topic_remove", "Do you mean topic_removed?"),
        ("subject =", "subjekt =", "line 5: rule payments_deleted, subjekt: there is no such"),
        ("subject =", "subjekt =", "Do you mean subject?"),
        ('"topic:payments-*"', "7", "line 5: rule payments_deleted, subject: write a text, or a"),
        ('"1h"', '"1 hour"', "line 6: rule payments_deleted, gather: '1 hour' is no length"),
        ('"1h"', '"0h"', "'0h' is no length of time"),
        ("{actor}", "{actorr}", "line 7: rule payments_deleted, sentence: {actorr} can't be"),
        ("{actor}", "{actor", "the braces are wrong"),
        ("{actor}", "{actor!r}", "{actor} takes nothing besides its name"),
        ('gather = "1h"', "", "line 2: rule payments_deleted: the field gather is missing"),
        ('gather = "1h"', 'gather = "1h"\ncount = 3', "line 7: rule payments_deleted, count: say"),
        ('gather = "1h"', 'gather = "1h"\nwithin = "3s"', "say also how many there must be"),
        ('gather = "1h"', 'gather = "1h"\nlasts = "3s"', "lasts and until belong together"),
        ('gather = "1h"', 'gather = "1h"\ncount = 0', "0 is no number from 1 to 1,000,000"),
        ('gather = "1h"', 'gather = "1h"\ncount = true', "True is no number"),
        (
            'gather = "1h"',
            'gather = "1h"\ntraits = ["widde"]',
            "'widde' is no trait. Do you mean w",
        ),
        ('gather = "1h"', 'gather = "1h"\nper = ["user"]', "line 7: rule payments_deleted, per"),
        ("\n[payments", 'name = "x"\n[payments', "mine.toml, line 1: name stands outside of a"),
    ],
)
def test_mistakes_are_named_with_their_line(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(RuleError) as caught:
        read_rules(GOOD.replace(old, new, 1), "mine.toml")
    assert said in str(caught.value)


def test_a_change_of_a_builtin_rule_is_blamed_on_the_users_file() -> None:
    with pytest.raises(RuleError) as caught:
        read_rules('[brokers_flapping]\nwithin = "soon"\n', "mine.toml")
    assert str(caught.value).startswith("mine.toml, line 2: rule brokers_flapping, within: ")
