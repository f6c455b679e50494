"""What processes wrote and what the store kept of one job, held against the laws I1 to I9 after a fault test.

Processes write every change they decide, what the store acknowledged, and what their handlers did. Of the
changes decided on one version at most one came to stand: the one that the next version stands on. Those make the
job's history, and `proof.chronicle` asks its laws of it. It knows nothing of processes or servers, only their records.
"""

from dataclasses import dataclass, field
from itertools import pairwise

from recording import unpacked

from tenure.proof.chronicle import Chronicle
from tenure.proof.steps import Breach, won
from tenure.rules import job as documents
from tenure.rules.instant import SECOND
from tenure.rules.job import EMPTY, Job, run_id

# What a busy machine may add to the bound of a takeover, in milliseconds.
GRACE_MS = 5_000


@dataclass
class Kept:
    """What stands in the store at the end: the document and its version, ended runs, and marks."""

    version: int
    job: Job
    pasts: dict
    marks: tuple = ()


@dataclass
class Conditions:
    """What a test did, and so what its history owes nobody.

    harmed: processes that were killed, frozen, cut off or stopped; stood: when others were first seen, on the store's
    clock; every_ms: the job's interval (a busy machine passes slots over where it is under a second); skip: the job's
    overlap mode; bound_ms: a takeover's; steady: the store's clock did not step; keeps: it lost nothing that it had
    acknowledged.
    """

    harmed: set = field(default_factory=set)
    stood: dict = field(default_factory=dict)
    every_ms: int | None = None
    skip: bool = True
    bound_ms: int = 0
    steady: bool = True
    keeps: bool = True


def breach(law, sentence):
    raise Breach(law, sentence, None)


def check(lines, document, kept, conditions):
    """Ask all laws; raises Breach at the first that is broken."""
    if not conditions.keeps:
        whole(kept)
        return
    changes = stood(lines, document, kept)
    told, attempts, ended, forgotten = Chronicle(), {}, {}, set()
    for step in changes:
        told.take(step)
        attempt = won(step)
        if attempt is not None:
            run = run_id(step.command.slot, step.command.request)
            attempts[attempt.token] = run, attempt
        ended |= {past.id: past for past in step.ended}
        forgotten |= set(step.forget)
    recorded(kept, ended, forgotten)
    begun(lines, attempts)
    orphans(lines, attempts, ended, conditions)
    if conditions.skip and conditions.steady:
        both_sure(lines)
    if conditions.steady:
        takeovers(attempts, {**ended, **{run.id: run for run in kept.job.runs}}, conditions)
    if conditions.every_ms and conditions.every_ms >= SECOND:
        slots(told, kept, conditions.every_ms)


def whole(kept):
    """I2, I3. What is left of a store that forgot is a history: each run once, its attempts in order, one outcome."""
    tokens = set()
    for run in (*kept.pasts.values(), *kept.job.runs):
        numbers = [attempt.number for attempt in run.attempts]
        if numbers != list(range(1, len(numbers) + 1)):
            breach("I2", f"the attempts of run {run.id} are numbered {numbers}")
        if len(tokens | {one.token for one in run.attempts}) < len(tokens) + len(numbers):
            breach("I2", f"a token of run {run.id} was used twice")
        if any(one.how == "success" for one in run.attempts[:-1]):
            breach("I3", f"run {run.id} went on after a success")
        tokens |= {one.token for one in run.attempts}
    if twice := kept.pasts.keys() & {run.id for run in kept.job.runs}:
        breach("I3", f"runs have ended and go on: {', '.join(twice)}")


def stood(lines, document, kept):
    """The steps that came to stand, in the order of the versions."""
    decided, acknowledged = {}, {}
    for line in lines:
        if line.get("document") != document:
            continue
        if line["what"] == "decided":
            decided.setdefault(line["version"], []).append(unpacked(line["steps"]))
        elif line["what"] == "acknowledged":
            if line["version"] in acknowledged:
                breach("S16", f"two changes of version {line['version']} were acknowledged")
            acknowledged[line["version"]] = line["body"]
    steps, job = [], EMPTY
    for version in range(kept.version):
        after = next_after(decided, version, kept)
        for change in decided.get(version, ()):
            if change[0].before != job:
                breach("S16", f"{document} was read as two documents of one version, {version}")
        fitting = [change for change in decided.get(version, ()) if change[-1].after == after]
        # A finish that was asked again leaves the same document, and another record beside it.
        chosen = next((change for change in fitting if _as_recorded(change, kept)), next(iter(fitting), None))
        if chosen is None:
            breach("S16", f"version {version + 1} of {document} was decided by nobody")
        if version in acknowledged and documents.encode(after).decode() != acknowledged[version]:
            breach("S15", f"what was acknowledged as version {version + 1} of {document} is not what stands")
        steps += chosen
        job = after
    if acknowledged and max(acknowledged) >= kept.version:
        breach("S15", f"version {max(acknowledged) + 1} of {document} was acknowledged, and {kept.version} stands")
    return steps


def _as_recorded(change, kept):
    return all(kept.pasts.get(past.id) == past for step in change for past in step.ended)


def next_after(decided, version, kept):
    """The document of the version after this one, by what was decided on it, or by what stands at the end."""
    if version + 1 == kept.version:
        return kept.job
    if version + 1 not in decided:
        breach("S16", f"nobody decided anything on version {version + 1}, and {kept.version} stands")
    return decided[version + 1][0][0].before


def recorded(kept, ended, forgotten):
    """I3, S15. The history beside the document is what the changes put there, no more and no less."""
    for run in (ended.keys() | kept.pasts.keys()) - forgotten:
        if ended.get(run) != kept.pasts.get(run):
            breach("I3", f"run {run} ended as {ended.get(run)}, and is recorded as {kept.pasts.get(run)}")


def begun(lines, attempts):
    """S20. A handler begins for an attempt that was won, by its winner, once."""
    seen = set()
    for line in (one for one in lines if one["what"] == "begin"):
        token = line["token"]
        if token in seen:
            breach("S20", f"attempt {line['attempt']} of {line['key']} began twice")
        seen.add(token)
        attempt = attempts[token][1] if token in attempts else None
        wanted = attempt and (attempt.number, attempt.fence, attempt.runner)
        if wanted != (line["attempt"], line["fence"], line["name"]):
            breach(
                "S20", f"{line['name']} began attempt {line['attempt']} of {line['key']}, and the winner is {wanted}"
            )


def orphans(lines, attempts, ended, conditions):
    """I8a. What was won is run by its winner, unless that was harmed; and a success is its handler's word."""
    began = {line["token"] for line in lines if line["what"] == "begin"}
    returned = {line["token"] for line in lines if line["what"] == "end" and line["how"] == "returned"}
    recorded = {one.token: one.how for past in ended.values() for one in past.attempts}
    for token, how in recorded.items():
        run, attempt = attempts[token]
        if token not in began and (how == "success" or attempt.runner not in conditions.harmed):
            breach("I8a", f"attempt {attempt.number} of run {run} at {attempt.runner} ended as {how} and never began")
        if how == "success" and token not in returned and attempt.runner not in conditions.harmed:
            breach("I8a", f"attempt {attempt.number} of run {run} is a success, and its handler never returned")


def both_sure(lines):
    """I9. What was done after a check lies before the next attempt's begin; `since` is when the check was asked."""
    spans = {}
    for line in lines:
        if line["what"] == "begin":
            spans[line["token"]] = [line["boot"], line["boot"], line]
        elif line["what"] == "effect" and line.get("held", True) and line["token"] in spans:
            spans[line["token"]][1] = max(line["since"], spans[line["token"]][1])
    for (_, last, one), (first, _, other) in pairwise(sorted(spans.values(), key=lambda span: span[0])):
        if last > first:
            names = " and ".join(f"attempt {it['attempt']} of {it['key']} at {it['name']}" for it in (one, other))
            breach("I9", f"{names} both were sure of their leases for {(last - first) * 1000:.0f} ms")


def takeovers(attempts, runs, conditions):
    """I7. A lapsed run is taken over within the bound, where an instance stood by the whole time."""
    for run, attempt in attempts.values():
        if attempt.number == 1 or run not in runs:
            continue
        before = runs[run].attempts[attempt.number - 2]
        if before.how not in ("expired", "unsure"):
            continue
        backups = {name for name, since in conditions.stood.items() if since <= before.renewed}
        late = attempt.started - before.renewed - conditions.bound_ms
        if late > GRACE_MS and backups - conditions.harmed - {before.runner}:
            breach("I7", f"run {run} was taken over {late} ms after its bound")


def slots(told, kept, every_ms):
    """I8. Each slot from the first one won to the last was won, or the reason why not is marked."""
    won_slots = {int(run) for run, one in told.runs.items() if one.won and "#" not in run}
    for slot in range(min(won_slots), max(won_slots), every_ms) if won_slots else ():
        if slot not in won_slots and not any(mark.slot <= slot <= mark.until for mark in kept.marks):
            breach("I8", f"slot {slot} was not run, and nothing says why")
