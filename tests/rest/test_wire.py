"""The common wire: JSON that can be read in one way only, and refusals that help."""

import importlib
import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tenure.doors.wire.arguments import Arguments
from tenure.doors.wire.refusals import STATUS, fault, problem, unknown_key
from tenure.doors.wire.strict import DEPTH, NotJson, parse, parse_object
from tenure.doors.wire.verb import read
from tenure.doors.wire.verbs import VERBS
from tenure.rules import endpoints
from tenure.rules.refusal import Code, Refusal

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_what_is_json_is_read_as_it_is(value, ascii_only):
    """Escaped or not, whatever nesting the values have."""
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert parse(raw) == value


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: json.dumps(text).encode()))
def test_whatever_comes_is_read_or_refused_in_a_sentence(raw):
    """Nothing else is ever raised, and an object is an object."""
    try:
        value = parse(raw)
    except NotJson:
        value = None
    told = parse_object(raw)
    assert isinstance(told, dict) == isinstance(value, dict)
    if isinstance(told, Refusal):
        assert (told.code, told.message[:8], told.message[-1]) == ("invalid_argument", "The body", ".")


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_nesting_is_counted_before_it_is_walked(opening):
    """32 levels are taken, 33 not, a million neither; brackets inside strings are no levels."""
    closing = {"[": "]", '{"a":': "}", '[{"a":': "}]"}[opening]
    levels = DEPTH // len(closing)
    assert parse((opening * levels + "1" + closing * levels).encode())
    for deeper in (levels + 1, 500_000):
        with pytest.raises(NotJson, match="deeper"):
            parse((opening * deeper + "1" + closing * deeper).encode())
    text = '\\"' + opening.replace('"', '\\"') * 100
    assert parse(f'["{text}", []]'.encode())[1] == []


def test_every_code_has_a_status_and_a_spelling_as_problem_and_as_fault():
    """The same code and words by either; details stand beside them and can't hide them."""
    assert set(STATUS) == set(get_args(Code))
    for code, status in STATUS.items():
        refusal = Refusal(code, "Said.", {"field": "x", "code": "other"})
        told = problem(refusal)
        assert (told["status"], told["code"], told["detail"], told["field"]) == (status, code, "Said.", "x")
        assert fault(refusal) == {"code": code, "message": "Said.", "field": "x"}


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("lease_ttl", "lease_ttl_seconds"),
        ("ttl", "lease_ttl_seconds"),
        ("lease_tokne", "lease_token"),
        ("todo", "todo_id"),
    ],
)
def test_b28_a_near_miss_is_told_its_right_name(key, near):
    """By what it is a part of, else by likeness."""
    known = VERBS["heartbeat"].arguments.model_fields
    assert unknown_key(key, known).details["did_you_mean"] == near
    assert near in unknown_key(key, known).message
    assert "did_you_mean" not in unknown_key("endpoint", known).details
    assert len(unknown_key("x" * 10_000, known).message) < 400


def test_b28_one_fault_is_told_at_a_time_keys_first():
    """An unknown key before a missing one, a missing one before a wrong value; no value is repeated."""
    secret = "tl_secret"  # noqa: S105 - the test's own
    faults = {"todo_id": 7, "lease_token": [secret], "lease_ttl_seconds": secret, "extra": secret}
    model = VERBS["heartbeat"].arguments
    first = read(model, faults)
    assert first.details["field"] == "extra"
    del faults["extra"], faults["lease_token"]
    second = read(model, faults)
    assert second.details["field"] == "lease_token"
    third = read(model, {**faults, "lease_token": "x"})
    assert third.details["field"] in {"todo_id", "lease_ttl_seconds"}
    assert secret not in first.message + second.message + third.message


def test_the_catalogue_has_every_verb_of_the_page_and_no_other():
    """Drain and produce; each schema is closed and says what it takes."""
    assert tuple(VERBS) == endpoints.DRAIN + endpoints.PRODUCE
    for verb in VERBS.values():
        schema = verb.arguments.model_json_schema()
        assert schema["additionalProperties"] is False
        lease = schema["properties"].get("lease_ttl_seconds")
        assert (lease is not None) == (verb.name in ("claim", "claim_next", "heartbeat"))
        if lease is not None:  # the cap is in the words alone, for more is clamped and not refused
            assert lease["anyOf"] == [{"type": "integer", "minimum": 1}, {"type": "null"}]
            assert "86400" in lease["description"]


def models(model=Arguments):
    """Every model of arguments, of all doors: those of verbs, and those of the routes."""
    for one in model.__subclasses__():
        yield one
        yield from models(one)


KINDS = {"boolean": True, "integer": 7, "number": 7.5, "string": "7", "array": ["7"], "object": {"7": 7}}
# A whole number is a number too.
ALSO = {"number": {"integer"}}


def kinds_of(shape, names):
    """The kinds of JSON that a schema lets pass; none for one that takes any."""
    if "$ref" in shape:
        return kinds_of(names[shape["$ref"].rsplit("/", 1)[1]], names)
    found = {shape["type"]} if "type" in shape else {"string"} if {"enum", "const"} & shape.keys() else set()
    for branch in shape.get("anyOf", ()):
        found |= kinds_of(branch, names)
    return found.union(*(ALSO.get(kind, set()) for kind in found))


def test_b40_no_value_is_taken_for_one_of_another_kind():
    """Neither `true` nor "7" is a number, 7.5 no whole one, "true" no boolean, 7 no text: in no field of any call."""
    importlib.import_module("tenure.doors.rest.app")
    checked = 0
    for model in models():
        schema = model.model_json_schema()
        for name, shape in schema["properties"].items():
            # The default lease is refused last of all, by its rule (B42), and has tests of its own.
            allowed = name != "default_lease_ttl_seconds" and kinds_of(shape, schema.get("$defs", {}))
            for kind, value in KINDS.items() if allowed else ():
                if kind in allowed:
                    continue
                with pytest.raises(ValidationError) as refused:
                    model.model_validate({name: value})
                assert name in {one["loc"][0] for one in refused.value.errors()}, (model, name, value)
                checked += 1
    assert checked > 400
