"""The text that Prometheus reads."""

import pytest

from runtime import metrics
from runtime.metrics import Registry


@pytest.fixture
def registry() -> Registry:
    return Registry()


def lines(registry: Registry) -> list[str]:
    text = registry.render().decode()
    assert text == "" or text.endswith("\n")
    return text.splitlines()


def test_no_metrics_make_no_text(registry: Registry) -> None:
    assert registry.render() == b""


def test_a_counter_begins_at_zero_and_counts_up(registry: Registry) -> None:
    counter = registry.counter("requests_total", "Requests that came.")
    assert lines(registry)[-1] == "requests_total 0"
    counter.add()
    counter.add(2.5)
    assert lines(registry) == [
        "# HELP requests_total Requests that came.",
        "# TYPE requests_total counter",
        "requests_total 3.5",
    ]
    with pytest.raises(AssertionError, match="only counts up"):
        counter.add(-1)


def test_labels_are_sorted_and_escaped(registry: Registry) -> None:
    counter = registry.counter("x_total", "A\\b\nc.", ["path", "code"])
    counter.add(1, 'b"\\\n', "2")
    counter.add(1, "a", "1")
    assert lines(registry) == [
        r"# HELP x_total A\\b\nc.",
        "# TYPE x_total counter",
        'x_total{path="a",code="1"} 1',
        r'x_total{path="b\"\\\n",code="2"} 1',
    ]


def test_a_gauge_goes_up_and_down_and_away(registry: Registry) -> None:
    gauge = registry.gauge("lag", "Lag.", ["peer"])
    assert lines(registry) == ["# HELP lag Lag.", "# TYPE lag gauge"]
    gauge.set(5, "1")
    gauge.set(-2.25, "1")
    gauge.set(1, "2")
    assert lines(registry)[2:] == ['lag{peer="1"} -2.25', 'lag{peer="2"} 1']
    gauge.forget("1")
    gauge.forget("never there")
    assert lines(registry)[2:] == ['lag{peer="2"} 1']


def test_a_histogram_counts_up_to_and_with_its_bounds(registry: Registry) -> None:
    histogram = registry.histogram("wait_seconds", "Waits.", [0.5, 1])
    for seconds in (0.25, 0.5, 0.75, 3):
        histogram.observe(seconds)
    assert lines(registry) == [
        "# HELP wait_seconds Waits.",
        "# TYPE wait_seconds histogram",
        'wait_seconds_bucket{le="0.5"} 2',
        'wait_seconds_bucket{le="1"} 3',
        'wait_seconds_bucket{le="+Inf"} 4',
        "wait_seconds_sum 4.5",
        "wait_seconds_count 4",
    ]


def test_a_histogram_with_labels(registry: Registry) -> None:
    registry.histogram("w", "W.", [1], ["op"]).observe(2, "fetch")
    assert lines(registry)[2:] == [
        'w_bucket{op="fetch",le="1"} 0',
        'w_bucket{op="fetch",le="+Inf"} 1',
        'w_sum{op="fetch"} 2',
        'w_count{op="fetch"} 1',
    ]


def test_what_is_kept_elsewhere_is_read_when_asked_for(registry: Registry) -> None:
    links: dict[tuple[str, ...], float] = {("opened",): 1, ("ended",): 0}
    registry.read_counter("links_total", "Links.", lambda: links, ["what"])
    registry.read_gauge("epoch", "Epoch.", lambda: 7)
    links["opened",] = 2
    assert lines(registry) == [
        "# HELP epoch Epoch.",
        "# TYPE epoch gauge",
        "epoch 7",
        "# HELP links_total Links.",
        "# TYPE links_total counter",
        'links_total{what="ended"} 0',
        'links_total{what="opened"} 2',
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (True, "1"),
        (1e300, "1e+300"),
        (2**53 - 1, "9007199254740991"),
        (0.1, "0.1"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers(registry: Registry, value: float, text: str) -> None:
    registry.gauge("g", "G.").set(value)
    assert lines(registry)[-1] == f"g {text}"


def test_label_sets_are_bounded(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "LABEL_SETS_MAX", 3)
    counter = registry.counter("c_total", "C.", ["client"])
    for client in range(10):
        counter.add(1, f"client-{client}")
    counter.add(5, "client-0")
    assert lines(registry)[2:] == [
        'c_total{client="client-0"} 6',
        'c_total{client="client-1"} 1',
        'c_total{client="client-2"} 1',
        'c_total{client="other"} 7',
    ]


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "ä"])
def test_wrong_names_are_refused(registry: Registry, name: str) -> None:
    with pytest.raises(AssertionError, match="not a metric's name"):
        registry.counter(name, "")
    with pytest.raises(AssertionError, match="label names"):
        registry.counter("fine", "", [name])


def test_a_name_is_declared_once(registry: Registry) -> None:
    registry.counter("a", "A.")
    with pytest.raises(AssertionError, match="a is declared twice"):
        registry.gauge("a", "A.")


def test_labels_must_be_those_that_were_declared(registry: Registry) -> None:
    with pytest.raises(AssertionError, match="has the labels"):
        registry.counter("a", "A.", ["x"]).add(1)
