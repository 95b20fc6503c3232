"""One pass of the loop handles a bounded number of requests; the others wait in order."""

import asyncio

from runtime.loop.pass_share import PassShare

COST_S = 0.004


class Passes:
    """Requests that take 4 ms each, and how many went on in each pass."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.now: list[str] = []
        self.passes: list[list[str]] = []
        self.share = PassShare(lambda: self.spent, 0.006)

    def ask(self, name: str, *, first: bool = False) -> None:
        def run() -> None:
            self.now.append(name)
            self.spent += COST_S

        self.share.call(run, first=first)

    async def next_pass(self) -> None:
        await asyncio.sleep(0)
        self.passes.append(self.now)
        self.now, self.spent = [], 0.0


async def test_a_pass_takes_its_share_and_the_rest_waits_in_order() -> None:
    passes = Passes()
    for number in range(7):
        passes.ask(str(number))
    while passes.share.waiting:
        await passes.next_pass()
    passes.passes.append(passes.now)
    assert [name for some in passes.passes for name in some] == [str(n) for n in range(7)]
    assert max(map(len, passes.passes)) <= 4, "two of this pass, two of the one before the count"


async def test_who_is_hastened_goes_first() -> None:
    passes = Passes()
    for number in range(6):
        passes.ask(str(number))
    passes.ask("heartbeat", first=True)
    while passes.share.waiting:
        await passes.next_pass()
    passes.passes.append(passes.now)
    order = [name for some in passes.passes for name in some]
    assert order.index("heartbeat") == 2


async def test_one_goes_on_in_each_pass_whatever_others_take() -> None:
    passes = Passes()
    passes.spent = 1.0
    passes.ask("a")
    passes.ask("b")
    assert passes.now == []
    await asyncio.sleep(0)
    assert passes.now == ["a"]
    await asyncio.sleep(0)
    assert passes.now == ["a", "b"]
