"""`tenure schedule` and `tenure todo`, typed at a served board (B48, B49)."""

import pytest

CRON = "0 7 * * MON-FRI"


@pytest.fixture
def triage(live):
    live.type("endpoint", "vend", "triage", "--queue", "inbox", "--queue", "night")
    return live


def test_b49_add_says_when_and_what_happens_on_clock_changes(triage):
    """The words of the schedule, its next slots in its zone, and the two next clock changes."""
    added = triage.type(
        "schedule", "add", "triage", CRON, "--tz", "Europe/Berlin", "--title", "triage of {slot:%d.%m.}"
    )
    assert "triage" in added.stdout.splitlines()[0]
    assert "next, Europe/Berlin" in added.stdout
    assert "+0" in added.stdout
    told = triage.read("schedule", "show", "triage")
    assert (told["expression"], told["tz"], told["overlap"], told["catch_up"]) == (CRON, "Europe/Berlin", "skip", "0ms")
    assert len(told["coming"]["clock_changes"]) == 2
    shown = triage.type("schedule", "show", "triage").stdout
    assert ["catch", "up", "none"] in [line.split() for line in shown.splitlines()]


def test_b49_preview_trigger_pause_resume_edit_remove(triage):
    """Each step as it is typed, and what REST says of it afterwards."""
    assert len(triage.read("schedule", "preview", "10m", "--count", "3")["next"]) == 3
    triage.type("schedule", "add", "triage", CRON, "--title", "first", "--queue", "night")
    fired = triage.read("schedule", "trigger", "triage")
    assert (fired["outcome"], fired["reason"]) == ("todo", "triggered by alice")
    skipped = triage.type("schedule", "trigger", "triage", code=5)
    assert "has not ended" in skipped.stdout
    todo = triage.read("todo", "show", fired["todo_id"])["todo"]
    assert (todo["title"], todo["queue"], todo["source"]) == ("first", "night", "schedule")
    assert triage.read("schedule", "pause", "triage")["paused"] == "paused by alice"
    assert "paused by alice" in triage.type("schedule", "list").stdout
    assert triage.read("schedule", "resume", "triage")["paused"] is None
    assert triage.read("schedule", "edit", "triage", "--title", "second")["expression"] == CRON
    assert "second" in triage.type("schedule", "show", "triage").stdout
    triage.type("schedule", "remove", "triage")
    triage.type("schedule", "show", "triage", code=3)
    assert triage.read("todo", "show", fired["todo_id"])["todo"]["state"] == "pending"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["61 * * * *"], "minute"),
        ([CRON, "--tz", "Mars/North"], "Mars/North"),
        ([CRON, "--title", "{nothing}"], "title"),
        ([CRON, "--queue", "elsewhere"], "queue"),
        ([CRON, "--overlap", "both"], "overlap"),
        ([CRON, "--catch-up", "90d"], "catch_up"),
    ],
)
def test_b49_what_is_wrong_is_refused_in_a_sentence(triage, options, field):
    """Exit 1, the field's name, and nothing was added."""
    refused = triage.type("schedule", "add", "triage", *options, code=1)
    assert field in refused.stderr
    assert triage.read("schedule", "list") == {"schedules": []}


@pytest.mark.parametrize("name", ["a/b", ".", ".."])
def test_b49_a_name_that_no_address_can_hold_is_refused(triage, name):
    """It could be added and then be shown, edited and removed by no command: refused at once, naming the field."""
    refused = triage.type("schedule", "add", "triage", CRON, "--name", name, code=1)
    assert "name stands in addresses" in refused.stderr
    assert triage.read("schedule", "list") == {"schedules": []}


@pytest.mark.parametrize("name", ["preview", "next", "a?b#c", "a%2Fb", "ä ö", "x;y"])
def test_b49_any_other_name_is_found_by_each_command(triage, name):
    """Letters that addresses spell in another way, and words that are addresses themselves."""
    triage.type("schedule", "add", "triage", CRON, "--name", name)
    for step in ("show", "pause", "resume", "trigger", "remove"):
        triage.type("schedule", step, name)
    assert triage.read("schedule", "list") == {"schedules": []}


def test_b26_anothers_schedule_is_an_unknown_one(triage):
    """Bob and Charlie get for Alice's schedule, by name and by id, what they get for none."""
    made = triage.read("schedule", "add", "triage", CRON)
    for other in ("bob", "charlie"):
        triage.as_(other)
        assert triage.read("schedule", "list") == {"schedules": []}
        for step in ("show", "pause", "resume", "trigger", "remove"):
            said = {triage.type("schedule", step, ref, code=3).stderr for ref in ("triage", made["id"], "none")}
            assert len(said) == 1


def test_b48_todos_are_added_listed_moved_retried_and_cancelled(triage):
    """A todo's life in the human's hands, with what each command prints."""
    triage.type("endpoint", "vend", "other")
    todo = triage.type("todo", "add", "triage", "one", "--payload", "-", "--key", "k1", stdin='{"n": 1}').stdout.strip()
    again = triage.read("todo", "add", "triage", "one", "--payload", '{"n": 1}', "--key", "k1")
    assert (again["existing"], again["todo"]["id"]) == (True, todo)
    assert "conflict" not in triage.type("todo", "add", "triage", "two", "--key", "k1", code=1).stderr.lower()
    assert triage.type("todo", "move", todo, "other").stdout.startswith(f"{todo}: pending on other-")
    assert triage.type("todo", "cancel", todo, "--reason", "not needed").stdout == f"{todo}: cancelled\n"
    triage.type("todo", "retry", todo, code=1)
    assert "not needed" in triage.type("todo", "show", todo).stdout
    assert triage.type("todo", "watch", todo, code=1).stderr == f"{todo}: cancelled\n"
    listed = triage.read("todo", "list", "--state", "cancelled")["todos"]
    assert [one["id"] for one in listed] == [todo]


def test_what_others_wrote_moves_no_terminal(triage):
    """Bodies, notes and reasons come from agents and other systems: escapes in them are shown, and not obeyed."""
    todo = triage.type("todo", "add", "triage", "one", "--body", "a\r\nb \x1b]0;x\x07 \x9b2J").stdout.strip()
    triage.type("todo", "cancel", todo, "--reason", "no\x1b[2J")
    shown = triage.type("todo", "show", todo).stdout
    assert "a\nb ?]0;x? ?2J" in shown
    assert "no?[2J" in shown


def test_b41_a_todo_that_nobody_holds_is_taken_on_the_page(triage):
    """No command claims for a human: what completes or fails says where it is done."""
    todo = triage.type("todo", "add", "triage", "one").stdout.strip()
    for step in ("complete", "fail"):
        assert "take it on the Board of the web page." in triage.type("todo", step, todo, code=1).stderr


def test_b48_lists_are_read_whole(triage):
    """Todos of two pages are listed, the newest first; --limit cuts, and says so."""
    from tenure.board import endpoints, todos
    from tenure.board.shapes import NewTodo

    board = triage.board
    (target,) = board.read(endpoints.list_all, board.alice)
    news = [NewTodo(title=f"todo {n}") for n in range(25)]
    made = [one.todo.summary.id for one in board.write(todos.create_many, board.alice, target, news)]
    assert [one["id"] for one in triage.read("todo", "list")["todos"]] == made[::-1]
    cut = triage.type("todo", "list", "--limit", "3")
    assert len(cut.stdout.splitlines()) == 4
    assert "--limit" in cut.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["x" * 201], 1),
        ([""], 1),
        (["x", "--queue", "nowhere"], 1),
        (["x", "--needs", "td_unknown"], 3),
    ],
)
def test_b2_what_is_over_a_limit_is_refused(triage, words, code):
    """The board's sentence and exit code, no traceback, nothing added."""
    triage.type("todo", "add", "triage", *words, code=code)
    assert triage.read("todo", "list")["todos"] == []


@pytest.mark.parametrize("words", [("add", "triage", "caf\udce9"), ("show", "\udcff"), ("list", "--queue", "\udcff")])
def test_words_that_are_no_text_are_a_usage_error(triage, words):
    """Bytes that the terminal sent and UTF-8 does not know: they stand in no JSON, and are no fault of ours."""
    assert "holds bytes that are no text in UTF-8. See: tenure todo" in triage.type("todo", *words, code=2).stderr


@pytest.mark.parametrize("option", ["--body", "--payload"])
def test_a_stdin_that_is_no_text_is_a_usage_error(triage, option):
    """As what is typed."""
    said = triage.type("todo", "add", "triage", "x", option, "-", stdin=b'{"a": "\xff"}', code=2).stderr
    assert f"{option[2:]}='-': is no text on stdin" in said


@pytest.mark.parametrize("payload", ["{", "NaN", '{"a": 1', r'"\ud800"'])
def test_a_payload_that_is_no_json_is_a_usage_error(triage, payload):
    """Refused before any request."""
    triage.type("todo", "add", "triage", "x", "--payload", payload, code=2)
