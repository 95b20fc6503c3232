"""Prometheus' text form, as our own registry writes it."""

import math

from logberg.operating.samples import Samples
from runtime.metrics import Registry


def test_what_our_registry_writes_is_read_back() -> None:
    registry = Registry()
    nasty = 'a "b"\\c\nd} 5'
    registry.counter("logberg_c_total", "Counts", ("event",)).add(2, nasty)
    registry.read_gauge("logberg_g", "A gauge", lambda: math.nan)
    registry.read_gauge("logberg_i", "Infinite", lambda: math.inf)
    registry.histogram("logberg_h_seconds", "Times", (0.1, 1.0)).observe(0.5)
    samples = Samples(registry.render().decode())
    (only,) = samples.all("logberg_c_total")
    assert only.labels == {"event": nasty}
    assert only.value == 2
    assert math.isnan(samples.value("logberg_g") or 0.0)
    assert samples.value("logberg_i") == math.inf
    assert samples.quantile("logberg_h_seconds", 0.99) == 1.0
    assert samples.count("logberg_h_seconds") == 1


def test_a_figure_that_is_not_there_is_none_and_not_zero() -> None:
    samples = Samples("logberg_a 0\n")
    assert samples.value("logberg_a") == 0.0
    assert samples.value("logberg_b") is None
    assert samples.value("logberg_a", state="x") is None
    assert samples.quantile("logberg_a", 0.5) is None


def test_what_can_not_be_read_is_left_out() -> None:
    samples = Samples('logberg_a many\n{x="1"} 2\n# TYPE x\n\nlogberg_b 3 1700000000000\n')
    assert samples.value("logberg_a") is None
    assert samples.value("logberg_b") == 3


def test_values_beyond_the_last_bound_are_infinite() -> None:
    text = 'h_bucket{le="1"} 1\nh_bucket{le="+Inf"} 100\nh_sum 9\nh_count 100\n'
    assert Samples(text).quantile("h", 0.99) == math.inf
    assert Samples(text).quantile("h", 0.01) == 1.0
