"""What a process writes of its own: every change it decides, before the store hears of it, and what was acknowledged.

It listens where the rules are asked and where the store answers, and changes neither. Its lines say `decided`
(the version a change stands on, and its steps as the laws want them) and `acknowledged`.
"""

import base64
import pickle
import time
from contextlib import ExitStack
from unittest.mock import patch

from tenure.proof.steps import Step
from tenure.scheduler import effects, ledger
from tenure.stores.contract import Outcome


def clocks():
    """The wall, and the machine's clock that never steps: all processes of one machine share it."""
    return {"at": time.time(), "boot": time.clock_gettime(time.CLOCK_BOOTTIME)}


def packed(steps):
    return base64.b64encode(pickle.dumps(steps)).decode()


def unpacked(text):
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - written by a process of this test


def recording(tell):
    """A context in which this process tells its changes by `tell(what, **facts)`."""
    decide, change_of, commit = ledger.decide, ledger.change_of, ledger.Ledger._commit
    asked = {}  # by the decision's id; the decision is kept beside, so that no other can have its id

    def deciding(job, command, now, past=None):
        decision = decide(job, command, now, past)
        asked[id(decision)] = decision, Step.of(job, command, now, decision, past)
        return decision

    def changing(name, version, job, now, decisions):
        steps = [asked[id(one)][1] for one in decisions]
        asked.clear()
        if job is not None:
            tell("decided", document=name, version=version, steps=packed(steps))
        return change_of(name, version, job, now, decisions)

    async def committing(self, changes, patience):
        outcomes = await commit(self, changes, patience)
        for change, outcome in zip(changes, outcomes, strict=True):
            if change.body is not None and outcome is Outcome.DONE:
                tell("acknowledged", document=change.name, version=change.version, body=change.body.decode())
        return outcomes

    stack = ExitStack()
    for module in (ledger, effects):
        stack.enter_context(patch.object(module, "decide", deciding))
        stack.enter_context(patch.object(module, "change_of", changing))
    stack.enter_context(patch.object(ledger.Ledger, "_commit", committing))
    return stack
