"""Schedules of the board as values: what is read, filled in, and refused in one sentence (B49)."""

import pytest

from tenure.rules.instant import instant
from tenure.rules.plans import Plan, fill, plan, timetable
from tenure.rules.refusal import Refusal
from tenure.rules.schedule import Cron, Every

AT = instant("2026-12-01T06:00:00Z", 0)


def test_b49_a_plan_is_read_with_its_defaults():
    """Expression and title are enough; the rest has the page's defaults."""
    found = plan({"expression": "0 7 * * MON-FRI", "title": "triage", "tz": "Europe/Berlin", "catch_up": "2h"})
    assert found == Plan("0 7 * * MON-FRI", "triage", "Europe/Berlin", catch_up_ms=7_200_000)
    assert isinstance(found.schedule, Cron)
    assert isinstance(timetable("10m", "UTC"), Every)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("plain", "plain"),
        ("triage of {slot}", "triage of 2026-12-01T07:00:00+01:00"),
        ("{slot:%d.%m.} {name}", "01.12. morning"),
        ("{{slot}}", "{slot}"),
    ],
)
def test_b49_fields_are_filled_in_the_schedules_zone(text, filled):
    """A slot's time is written as its zone has it."""
    assert fill(text, "Europe/Berlin", "morning", AT) == filled


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"title": "x"}, "expression"),
        ({"expression": "* * * * *"}, "title"),
        ({"expression": "61 * * * *", "title": "x"}, "expression"),
        ({"expression": "10x", "title": "x"}, "expression"),
        ({"expression": "0 7 * * *", "title": "x", "tz": "Mars/North"}, "tz"),
        ({"expression": "10m", "title": "x", "tz": "Mars/North"}, "tz"),
        ({"expression": "10m", "title": "x", "tz": "localtime"}, "tz"),
        ({"expression": "0 7 * * *", "title": "{slot.__class__}"}, "title"),
        ({"expression": "0 7 * * *", "title": "{0}"}, "title"),
        ({"expression": "0 7 * * *", "title": "{other}"}, "title"),
        ({"expression": "0 7 * * *", "title": "{slot"}, "title"),
        ({"expression": "0 7 * * *", "title": "x", "body": "{slot!r:>10}{"}, "body"),
        ({"expression": "0 7 * * *", "title": "x" * 201}, "title"),
        ({"expression": "0 7 * * *", "title": "two\nlines"}, "title"),
        ({"expression": "0 7 * * *", "title": "{slot!r}"}, "title"),
        ({"expression": "0 7 * * *", "title": "{slot:%n}"}, "title"),
        ({"expression": "0 7 * * *", "title": "{slot:{name}{name}}"}, "title"),
        ({"expression": "0 7 * * *", "title": "x", "body": "{name:>2000000000}"}, "body"),
        ({"expression": "0 7 * * *", "title": "x", "priority": 99}, "priority"),
        ({"expression": "0 7 * * *", "title": "x", "payload": "x" * 300_000}, "payload"),
        ({"expression": "0 7 * * *", "title": "{slot}" + "x" * 190}, "title"),
        ({"expression": "0 7 * * *", "title": "x", "overlap": "both"}, "overlap"),
        ({"expression": "0 7 * * *", "title": "x", "dst_gap": "first"}, "dst_gap"),
        ({"expression": "0 7 * * *", "title": "x", "catch_up": "31d"}, "catch_up"),
        ({"expression": "0 7 * * *", "title": "x", "catch_up": True}, "catch_up"),
        ({"expression": "0 7 * * *" + " " * 300, "title": "x"}, "expression"),
    ],
)
def test_b49_a_plan_is_refused_with_its_field(raw, field):
    """Whatever is wrong is one sentence that names the field."""
    refused = plan(raw)
    assert isinstance(refused, Refusal)
    assert refused.details["field"] == field
    assert refused.message.endswith(".") or "'" in refused.message
