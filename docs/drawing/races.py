"""Read, decide, commit: one claim, and two at once, drawn call by call.

What the others draw as one arrow is taken apart here: the calls to the store, and the rules between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

from drawing.scenes import SceneError, job, runs_on, stage, to
from drawing.talk import Talk, answer_words, command_words, node_name, sequence
from tenure.proof.turned import NODE
from tenure.rules import commands as c
from tenure.rules.job import Job, Past
from tenure.rules.runs import Decision, decide
from tenure.scheduler import ledger
from tenure.stores.contract import Ask, Change, Reading, Verdict
from tenure.testing.cluster import Wire

DOCUMENT: Final = "job:report"


@contextmanager
def taken_apart(talk: Talk) -> Iterator[None]:
    """Record every read and commit of the job's document, and every decision between, until the end of the block."""
    read, commit = Wire.read, Wire.commit

    async def heard_read(wire: Wire, asks: Sequence[Ask]) -> Reading:
        ours = any(one.name == DOCUMENT and one.runs for one in asks)
        asked = talk.asks("read the job's document" if ours else "")
        reading = await read(wire, asks)
        talk.answers(asked, f"version {reading.found[0].version}, and the store's time" if reading.found else "")
        return reading

    async def heard_commit(wire: Wire, changes: Sequence[Change]) -> Verdict:
        ours = [one for one in changes if one.name == DOCUMENT]
        asked = talk.asks(f"commit, if still version {ours[0].version} and in time" if ours else "")
        verdict = await commit(wire, changes)
        talk.answers(asked, ", ".join(outcome.value for outcome in verdict.outcomes))
        return verdict

    def heard_decide(document: Job, command: c.Command, now: int, past: Past | None = None) -> Decision:
        decision = decide(document, command, now, past)
        if talk.on and command_words(command):
            place = node_name(NODE.get())
            talk.note(place, f"decide: {command_words(command)}: {answer_words(decision.answer)}")
        return decision

    with (
        patch.object(Wire, "read", heard_read),
        patch.object(Wire, "commit", heard_commit),
        patch.object(ledger, "decide", heard_decide),
    ):
        yield


def _claims(names: str) -> str:
    """The drawing of a slot that these instances claim within a few milliseconds of each other."""
    with stage(job(takes=300, jitter="10ms"), names, way=0.003) as talk:
        to(talk, "00:59:59")
        with taken_apart(talk):
            talk.on = True
            to(talk, "01:00:00.1")
        if not runs_on(talk.cluster, "a"):
            raise SceneError("the first instance to claim a slot did not win it")
        talk.digits = 3
        return sequence(talk)


def claim_in_full() -> str:
    """One instance claims one slot."""
    return _claims("a")


def two_claims() -> str:
    """Two instances decide on one version of the document: one commit is applied, the other has lost its race."""
    drawing = _claims("ab")
    if "raced" not in drawing:
        raise SceneError("two claims at once did not race")
    return drawing
