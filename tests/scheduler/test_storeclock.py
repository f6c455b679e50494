"""The store's clock as an instance knows it (R32, R33)."""

import random

import pytest

from tenure.scheduler.storeclock import StoreClock


class Clock:
    def __init__(self, wall=1_000_000.0):
        self.at, self.skew = 0.0, wall

    def boot(self):
        return self.at

    def wall(self):
        return self.at + self.skew


def hear(estimate, clock, store_ahead, there, back):
    """One answer: the store reads its clock `there` ms after sending, `back` ms before receiving."""
    sent = clock.at
    clock.at += there
    now = int(clock.at + store_ahead)
    clock.at += back
    return estimate.observe(sent, clock.at, now)


def test_r32_the_error_is_at_most_the_round_trip():
    """Whatever the ways there and back take, the store's time has come when the estimate says so."""
    clock = Clock()
    estimate = StoreClock(clock)
    chance = random.Random(1)
    for _ in range(500):
        assert hear(estimate, clock, 3_600_000, chance.uniform(0.1, 40), chance.uniform(0.1, 40)) == 0
        true = clock.at + 3_600_000
        assert true - 82 <= estimate.now() <= true
        clock.at += chance.uniform(0, 1000)
    assert estimate.offset() == pytest.approx(1_000_000 - 3_600_000, abs=5)


def test_r32_a_good_answer_is_remembered():
    """After one quick answer, slow ones do not worsen the estimate."""
    clock = Clock()
    estimate = StoreClock(clock)
    hear(estimate, clock, 500, 0.1, 0.1)
    for _ in range(20):
        hear(estimate, clock, 500, 200, 300)
    assert estimate.now() == pytest.approx(clock.at + 500, abs=4)


@pytest.mark.parametrize("step", [-60_000, -5_000, 5_000, 3_600_000])
def test_r33_a_step_is_noticed_at_the_first_answer(step):
    """Its size too; and while it went back, until it has caught up, the estimate says so."""
    clock = Clock()
    estimate = StoreClock(clock)
    hear(estimate, clock, 0, 0.5, 0.5)
    clock.at += 1_000
    assert hear(estimate, clock, step, 0.5, 0.5) == pytest.approx(step, abs=5)
    assert estimate.now() == pytest.approx(clock.at + step, abs=3)
    assert estimate.behind() is (step < 0)
    clock.at += max(0, -step) + 10
    assert not estimate.behind()


def test_clocks_that_drift_do_not_step():
    """One in ten thousand, for a day: never told as a step."""
    clock = Clock()
    estimate = StoreClock(clock)
    for _ in range(2_000):
        assert abs(hear(estimate, clock, clock.at * 1e-4, 1, 1)) < 50
        clock.at += 43_200


def test_before_the_first_answer_the_wall_clock_must_do():
    """There is nothing better."""
    clock = Clock(5_000.0)
    estimate = StoreClock(clock)
    assert estimate.now() == 5_000.0
    assert estimate.boot_of(5_100.0) == 100.0
    assert estimate.offset() == 0.0
