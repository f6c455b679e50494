"""`tenure.testing`: what a cluster refuses, in a sentence, and what can be said to it."""

import gc

import pytest

from tenure import ConfigError, NotFound


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda c: c.kill("z"), "there is no instance 'z' in this cluster. There are: a, b, c."),
        (lambda c: c.health("z"), "there is no instance 'z'"),
        (lambda c: c.ended("tik"), "there is no job 'tik' in this cluster. Did you mean 'tick'?"),
        (lambda c: c.marks("tik"), "there is no job 'tik'"),
        (lambda c: c.runner("tik"), "there is no job 'tik'"),
        (lambda c: c.trigger("tik"), "there is no job 'tik'"),
        (lambda c: c.heard("success", "tik"), "there is no job 'tik'"),
    ],
    ids=["kill", "health", "ended", "marks", "runner", "trigger", "heard"],
)
def test_names_that_are_not_there(cluster, job, ask, says):
    """A typo is no empty answer."""
    c = cluster([job()])
    with pytest.raises(NotFound) as told:
        ask(c)
    assert str(told.value).startswith(says)


def test_what_can_not_be_meant(cluster, job):
    """No instances, a start that is no time, a clock turned back, an event that there is not."""
    with pytest.raises(ConfigError, match="start='noon': is no time"):
        cluster([job()], start="noon")
    with pytest.raises(ConfigError, match="n=-1"):
        cluster([job()], -1)
    with pytest.raises(ConfigError, match="n=0: makes no instance"):
        cluster([job()], 0).advance(1)
    c = cluster([job()])
    with pytest.raises(ConfigError, match="only turned forward"):
        c.advance(-1)
    with pytest.raises(ConfigError, match="is no event"):
        c.heard("sucess")


def test_what_does_not_run_hears_no_stop(cluster, job):
    """Refused, for it would be waited for for ever; thawed, or started anew, it stops, and once more does nothing."""
    c = cluster([job()])
    c.kill("a")
    c.freeze("b")
    for name in ("a", "b"):
        with pytest.raises(ConfigError, match=f"name='{name}': was killed, or is frozen"):
            c.stop(name)
    c.start("a")
    c.thaw("b")
    for name in ("a", "b", "b"):
        c.stop(name)


def test_trigger_runs_a_job_without_a_schedule(cluster, job, log):
    """At once, by one of the instances, also right after the start."""
    c = cluster([job("report", None)])
    wish = c.trigger("report")
    c.until(lambda: c.ended("report"))
    assert [past.request for past in c.ended("report")] == [wish]
    c.trigger("report")
    c.until(lambda: len(c.ended("report")) == 2)
    assert len(log.of("end")) == 2


@pytest.mark.parametrize("seed", range(5))
def test_killed_before_the_first_turn(cluster, job, seed):
    """It leaves nothing behind that fails the test at its end."""
    c = cluster([job()], seed=seed)
    c.kill("a")
    gc.collect()
    c.kill("b")
    gc.collect()
