"""The document as it is kept: its names, its encoding, and what other versions may find."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.rules.job import (
    EMPTY,
    FORMAT,
    Attempt,
    Definition,
    Job,
    Mark,
    Past,
    Progress,
    Request,
    Run,
    decode,
    decode_past,
    encode,
    encode_past,
    run_id,
    split_run_id,
)
from tenure.rules.lease import Lease

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
TIMES = st.integers(-(2**53), 2**53)
COUNTS = st.integers(0, 2**31)
ATTEMPTS = st.builds(
    Attempt,
    COUNTS, TEXT, TEXT, st.sampled_from(("schedule", "catch-up", "takeover", "manual")), COUNTS, TIMES, TIMES, COUNTS,
    st.none() | TIMES, st.none() | st.sampled_from(("success", "expired", "claimed")),
)  # fmt: skip
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
MODES = st.sampled_from(("skip", "allow"))
SEVERAL = st.lists(ATTEMPTS, min_size=1, max_size=3).map(tuple)
RUNS = st.builds(
    Run,
    TIMES, TEXT, st.builds(Lease, TEXT, TEXT, TIMES, st.booleans()), COUNTS, MODES, COUNTS, SEVERAL,
    st.none() | st.builds(Progress, NUMBERS, st.none() | NUMBERS, TEXT),
)  # fmt: skip
MAYBE = st.none() | TIMES
JOBS = st.builds(
    Job,
    MAYBE, MODES, MAYBE, COUNTS, COUNTS, MAYBE, st.lists(st.builds(Request, TEXT, TIMES, TEXT), max_size=3).map(tuple),
    st.lists(st.tuples(TEXT, TIMES), max_size=3).map(tuple), st.none() | st.builds(Definition, TEXT, TEXT, TEXT),
    MAYBE, st.lists(RUNS, max_size=3).map(tuple), st.lists(TEXT, max_size=3).map(tuple),
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
PASTS = st.builds(
    Past,
    TIMES, TEXT, st.sampled_from(("success", "failed", "interrupted", "claimed")), TIMES, COUNTS, COUNTS, SEVERAL, JSON,
    st.none() | st.tuples(TEXT, TEXT, TEXT),
)  # fmt: skip


@given(JOBS)
def test_a_document_comes_back_as_it_was(job: Job) -> None:
    """Value for value and type for type, in any script."""
    again = decode(encode(job))
    assert again == job
    assert repr(again) == repr(job)


@given(PASTS)
def test_an_ended_run_comes_back_as_it_was(past: Past) -> None:
    """With its attempts, its result and its error."""
    again = decode_past(encode_past(past))
    assert again == past
    assert repr(again) == repr(past)


def test_nothing_stored_is_a_job_of_which_nothing_is_known() -> None:
    """And an empty job is a few bytes."""
    assert decode(None) == EMPTY
    assert decode(encode(EMPTY)) == EMPTY
    assert len(encode(EMPTY)) < 60


def test_a_document_with_a_run_is_a_few_hundred_bytes() -> None:
    """R40: with names, tokens and a definition as long as they usually are."""
    attempt = Attempt(1, "t" * 22, "host-4711-abcdef", "schedule", 7, 10**12, 10**12)
    run = Run(10**12, "", Lease("t" * 22, "host-4711-abcdef", 10**12), 30_000, "skip", 0, (attempt,))
    assert len(encode(Job(newest=10**12, fence=7, bound=300_000, seen=(("0 3 * * * UTC", 10**12),), runs=(run,)))) < 400


def test_a_document_without_the_newest_fields_is_read() -> None:
    """What an earlier version wrote has no list of wishes that were claimed."""
    kept = json.loads(encode(Job(newest=5, fence=1)))
    assert "taken" not in kept
    assert decode(json.dumps({**kept, "unheard of": 1}).encode()) == Job(newest=5, fence=1)


@pytest.mark.parametrize("body", [b'{"v":2}', b"{}"])
def test_a_document_of_another_format_is_refused(body: bytes) -> None:
    """In one sentence that says why."""
    with pytest.raises(ValueError, match="was written by another version of Tenure"):
        decode(body)
    assert FORMAT == 1


@pytest.mark.parametrize("body", [b"", b"{", b"\xff"])
def test_a_document_that_is_no_json_is_refused(body: bytes) -> None:
    """Never taken for a job of which nothing is known: everything would run again."""
    with pytest.raises(ValueError, match=r".+"):
        decode(body)


@pytest.mark.parametrize(
    ("slot", "request_id", "name"),
    [(0, "", "0"), (1_700_000_000_000, "", "1700000000000"), (5, "w", "5#w"), (-5, "a#b", "-5#a#b")],
)
def test_a_runs_name_can_be_taken_apart(slot: int, request_id: str, name: str) -> None:
    """The slot, and the wish of a manual run, whatever letters it has."""
    assert run_id(slot, request_id) == name
    assert split_run_id(name) == (slot, request_id)


@given(TIMES, TEXT)
def test_every_runs_name_can_be_taken_apart(slot: int, request: str) -> None:
    """There and back."""
    assert split_run_id(run_id(slot, request)) == (slot, request)


def test_runs_are_found_by_slot_and_wish() -> None:
    """A manual run is another one than the slot of the same time."""
    attempt = Attempt(1, "a", "one", "manual", 1, 0, 0)
    manual = Run(0, "w", Lease("a", "one", 5), 5, "skip", 0, (attempt,))
    job = Job(runs=(manual,))
    assert job.find(0, "w") is manual
    assert job.find(0, "") is None
    assert manual.id == "0#w"
    assert Past(0, "w", "success", 1, 5, 0, (attempt,)).id == "0#w"


def test_a_mark_is_of_one_slot_unless_it_says_more() -> None:
    """The request and the neighbour are optional."""
    mark = Mark(5, 5, 1, "late", "", 9, "one")
    assert (mark.request, mark.after) == ("", None)
