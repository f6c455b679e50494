"""`tenure explain`: what a schedule does, clock changes included; and what can't be meant, with the place marked."""

from __future__ import annotations

import pytest

BERLIN = ["--tz", "Europe/Berlin"]
MARCH = ["--from", "2026-03-28T00:00:00Z"]

WARNING = (
    "  warning   clocks in Europe/Berlin go from 02:00 to 03:00, 03:00 to 02:00, and it has times in there: one that "
    "is skipped runs that much later (dst_gap), one that comes twice runs in its first pass (dst_overlap)"
)
MALFORMED = [
    ("61 * * * *", "minute '61' is over 59", "^^"),
    ("* 25 * * *", "hour '25' is over 23", "  ^^"),
    ("* * 0 * *", "day of month '0' is under 1", "    ^"),
    ("* * * 13 *", "month '13' is over 12", "      ^^"),
    ("* * * * 9", "day of week '9' is over 7", "        ^"),
    ("*/0 * * * *", "has a step of 0", "^^^"),
    ("5-1 * * * *", "runs backwards", "^^^"),
    ("1,,2 * * * *", "has an empty item", "  ^"),
    ("a * * * *", "minute 'a' is no value", "^"),
    ("* * * FOO *", "month 'FOO' is no value", "      ^^^"),
    ("* * * * MON#6", "counts no week", "        ^^^^^"),
    ("* * * *", "has 4 fields, not 5", "^^^^^^^"),
    ("* * * * * * *", "has 7 fields, not 5", "^^^^^^^^^^^^^"),
    ("0 0 31 2 *", "never comes", "    ^^"),
    ("@dayly", "did you mean @daily?", "^^^^^^"),
    ("", "is empty", "^^"),
    ("10x", "is neither a length of time nor a cron expression", "^^^"),
    ("-5 * * * *", "minute '-5' is no range", "^^"),
    ("0s", "out of bounds", "^^"),
    ("* * L-40 * *", "is not supported", "    ^^^^"),
    ("TZ=UTC * * * * *", "seconds 'TZ=UTC' is no value", "^^^^^^"),
]


@pytest.mark.parametrize(("expression", "says", "caret"), MALFORMED)
def test_malformed(cli, expression, says, caret):
    """One clear line, the expression, and carets below the place; exit 2, nothing on stdout."""
    result = cli("explain", expression)
    assert (result.exit_code, result.stdout) == (2, "")
    line, shown, marks = result.stderr.splitlines()
    assert line.startswith("tenure: ")
    assert says in line
    assert shown == f"  {expression or chr(39) * 2}"
    assert marks == f"  {caret}"


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_refusals_are_the_same_with_json(cli, json):
    """With --json a refusal stays what it is: talk."""
    result = cli("explain", "61 * * * *", *json)
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize(
    ("words", "says", "shown"),
    [
        (["--tz", "Europe/Berln"], "did you mean Europe/Berlin?", "--tz Europe/Berln"),
        (["--dst-gap", "shif"], "did you mean 'shift'?", "--dst-gap shif"),
        (["--dst-overlap", "all"], "write 'first', 'second', 'both'", "--dst-overlap all"),
    ],
)
def test_wrong_options(cli, words, says, shown):
    """A wrong zone or choice is marked where it stands."""
    result = cli("explain", "0 0 * * *", *words)
    assert result.exit_code == 2
    line, typed, marks = result.stderr.splitlines()
    assert says in line
    assert typed == f"  {shown}"
    assert marks.endswith("^" * len(words[1]))


def test_a_wrong_start(cli):
    """--from is refused by its name."""
    result = cli("explain", "10s", "--from", "yesterday")
    assert result.exit_code == 2
    assert result.stderr.startswith("tenure: --from='yesterday': is no time; write ISO 8601")


def test_the_shell_ate_the_stars(cli):
    """Words that the shell made of an expression without quotes are refused with that hint."""
    result = cli("explain", "30", "2", "a.txt", "b.txt")
    assert result.exit_code == 2
    assert "put the expression in quotes" in result.stderr


def test_the_story_of_one_expression(cli):
    """The sentence, the normalised form, warnings, slots in both clocks, and both nights."""
    result = cli("explain", "30 2 * * *", *BERLIN, *MARCH, "--count", "3")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "At 02:30 every day, Europe/Berlin time",
        "  schedule  cron 30 2 * * * Europe/Berlin",
        WARNING,
        "",
        "next, Europe/Berlin          UTC",
        "Sat 2026-03-28 02:30 +01:00  2026-03-28 01:30Z  in 1h30m",
        "Sun 2026-03-29 03:30 +02:00  2026-03-29 01:30Z  in 1d1h   02:30 does not exist on that day",
        "Mon 2026-03-30 02:30 +02:00  2026-03-30 00:30Z  in 2d",
        "",
        "The next clock changes, Europe/Berlin",
        "  Sun 2026-03-29, clocks go forward from 02:00 to 03:00",
        "    02:30 does not exist: runs at 03:30 (+02:00)",
        "  Sun 2026-10-25, clocks go back from 03:00 to 02:00",
        "    02:30 comes twice: runs the first time only (+02:00)",
    ]


@pytest.mark.parametrize(
    ("expression", "options", "spring", "autumn"),
    [
        ("30 2 * * *", ["--dst-gap", "asap"], "02:30 does not exist: runs at 03:00 (+02:00)",
         "02:30 comes twice: runs the first time only (+02:00)"),
        ("30 2 * * *", ["--dst-gap", "skip", "--dst-overlap", "second"], "02:30 does not exist: left out",
         "02:30 comes twice: runs the second time only (+01:00)"),
        ("30 2 * * *", ["--dst-overlap", "both"], "02:30 does not exist: runs at 03:30 (+02:00)",
         "02:30 comes twice: runs both times"),
        ("0 9 * * *", [], "not touched: runs at 09:00", "not touched: runs at 09:00"),
        ("0 9 * * 1-5", [], "no run on that day", "no run on that day"),
        ("0 * * * *", [], "by elapsed time, as always: 23 runs in that day of 23 hours",
         "by elapsed time, as always: 25 runs in that day of 25 hours"),
        ("*/20 2 * * *", [], "02:00, 02:20 and 02:40 do not exist: run at 03:00, 03:20 and 03:40 (+02:00)",
         "02:00, 02:20 and 02:40 come twice: run the first time only (+02:00)"),
        ("30 2,3 * * *", [], "02:30 does not exist, and falls together with others: runs at 03:30",
         "02:30 comes twice: runs the first time only (+02:00)"),
    ],
)  # fmt: skip
def test_nights(cli, expression, options, spring, autumn):
    """What a schedule does on the two nights, by its choices."""
    lines = cli("explain", expression, *BERLIN, *MARCH, "--count", "0", *options).stdout.splitlines()
    assert lines[-3].strip() == spring
    assert lines[-1].strip() == autumn


def test_zones_without_changes(cli):
    """Where clocks are not changed, that is said."""
    assert cli("explain", "0 0 * * *").stdout.splitlines()[-1] == "UTC has no clock changes."
    said = cli("explain", "0 0 * * *", "--tz", "Asia/Tokyo").stdout.splitlines()[-1]
    assert said == "The clocks of Asia/Tokyo are not changed in the next ten years."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("10s", "Every 10 seconds"),
        ("90", "Every 1 minute 30 seconds"),
        ("1h30m", "Every 1 hour 30 minutes"),
        ("250ms", "Every 250 milliseconds"),
    ],
)
def test_lengths_of_time(cli, text, words):
    """A length of time is an interval."""
    result = cli("explain", text, "--from", "2026-01-01T00:00:00Z", "--count", "1")
    assert result.exit_code == 0
    assert result.stdout.startswith(words)


@pytest.mark.parametrize(
    ("text", "line"), [("10s", "every 10s"), ("90m", "every 1h30m"), ("0 6 * * *", "cron 0 6 * * * UTC")]
)
def test_the_schedule_as_it_is_written(cli, text, line):
    """In the units that people write."""
    assert f"  schedule  {line}\n" in cli("explain", text).stdout


def test_steps_that_step_nowhere(cli):
    """The sentence says what happens, not what was meant."""
    said = cli("explain", "*/90 * * * *").stdout
    assert said.startswith("At the start of every hour, UTC\n")
    assert "the step 90 is larger than the range" in said


def test_json(read):
    """The same data as JSON, its fields pinned."""
    told = read("explain", "30 2 * * *", *BERLIN, *MARCH, "--count", "2")
    assert list(told) == [
        "expression", "kind", "cron", "every_ms", "tz", "identity", "words", "warnings", "from", "from_ms", "next",
        "changes",
    ]  # fmt: skip
    assert told["next"][1] == {
        "at": "2026-03-29T01:30:00Z",
        "at_ms": 1_774_747_800_000,
        "local": "2026-03-29T03:30:00+02:00",
        "meant": "2026-03-29T02:30:00",
        "shifted": "gap",
    }
    spring = told["changes"][0]
    assert list(spring) == [
        "at", "at_ms", "kind", "local_before", "local_after", "offset_before_seconds", "offset_after_seconds", "says",
        "slots",
    ]  # fmt: skip
    assert (spring["kind"], spring["offset_before_seconds"], spring["offset_after_seconds"]) == ("gap", 3_600, 7_200)
    assert spring["says"] == "02:30 does not exist: runs at 03:30 (+02:00)"


@pytest.mark.parametrize("expression", ["30 2 * * *", "10s", "*/7 1-3 1,15 * MON"])
def test_forty_columns(cli, expression):
    """Readable at 40 columns: no line but a list of slots is wider."""
    result = cli("explain", expression, *BERLIN, COLUMNS="40")
    assert result.exit_code == 0
    assert all(len(line) <= 40 for line in result.stdout.splitlines())
