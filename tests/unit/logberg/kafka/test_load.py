"""What Kafka's producer and consumer say that they did."""

from logberg.kafka.load import read_producer

PLACE = '"offset":0,"partition":1,"topic":"orders"'
PRINTED = f"""\
{{"timestamp":1700000000000,"name":"startup_complete"}}
{{"timestamp":1700000000100,"name":"producer_send_success","key":null,"value":"0",{PLACE}}}
{{"timestamp":1700000000110,"name":"producer_send_success","key":null,"value":"2",{PLACE}}}
[2026-11-28 12:00:00] WARN something (org.apache.kafka)
{{"timestamp":1700000000150,"name":"producer_send_error","message":"no leader","value":"1"}}
{{"timestamp":1700000000460,"name":"producer_send_success","key":null,"value":"3",{PLACE}}}
{{"timestamp":1700000000470,"name":"producer_send_succ"""


def test_what_was_acknowledged_what_not_and_the_longest_gap() -> None:
    sent = read_producer(PRINTED.encode())
    assert sent.acknowledged == [0, 2, 3]
    assert sent.refused == ["no leader"]
    assert sent.longest_gap_ms == 350


def test_before_the_first_line_nothing_is_sent() -> None:
    assert read_producer(b"") == ([], [], 0)
