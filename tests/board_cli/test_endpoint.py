"""`tenure endpoint`, typed at a served board; the ADR's sentences about the command line among it (B48)."""

import errno
import fcntl
from concurrent.futures import ThreadPoolExecutor

import pytest

from tenure.doors.cli import keeping


def test_adr_0043_cli_vend_takes_a_default_lease_and_the_list_shows_it(live):
    """`endpoint vend --lease-ttl` sets the default; LEASE shows it, and whose it is where the server's holds."""
    live.type("endpoint", "vend", "reviewer", "--lease-ttl", "1h30m")
    live.type("endpoint", "vend", "plain")
    shown = live.type("endpoint", "list").stdout
    assert "LEASE" in shown.splitlines()[0]
    assert [line.split()[4] for line in shown.splitlines()[1:] if "reviewer" in line] == ["1h30m"]
    assert "5m (server)" in shown


@pytest.mark.parametrize(
    ("typed", "stored"), [("60", 60), ("60s", 60), ("45m", 2700), ("1h30m", 5400), ("24h", 86400), ("1d", 86400)]
)
def test_adr_0043_cli_converts_durations_to_whole_seconds(live, typed, stored):
    """What is typed as a duration reaches the board in seconds."""
    live.type("endpoint", "vend", "reviewer")
    told = live.read("endpoint", "edit", "reviewer", "--lease-ttl", typed)
    assert told["default_lease_ttl_seconds"] == told["effective_lease_ttl_seconds"] == stored


def test_adr_0043_cli_default_resets(live):
    """`--lease-ttl default` goes back to the server's."""
    live.type("endpoint", "vend", "reviewer", "--lease-ttl", "45m")
    told = live.read("endpoint", "edit", "reviewer", "--lease-ttl", "default")
    assert told["default_lease_ttl_seconds"] is None
    assert (told["effective_lease_ttl_seconds"], told["effective_lease_ttl_source"]) == (300, "server")


@pytest.mark.parametrize("typed", ["1.5", "250ms", "soon", "-60", "", "60 seconds", "nan"])
def test_adr_0043_cli_no_whole_number_of_seconds_is_a_usage_error_before_any_request(live, typed):
    """What is no whole number of seconds is refused here, with exit 2; nothing reaches the board."""
    live.type("endpoint", "vend", "reviewer", "--lease-ttl", "45m")
    live._patch.setenv("TENURE_URL", "http://127.0.0.1:1")  # nobody is there: a request would fail otherwise
    refused = live.type("endpoint", "edit", "reviewer", f"--lease-ttl={typed}", code=2)
    assert "lease-ttl" in refused.stderr


@pytest.mark.parametrize("typed", ["59", "0", "86401", "2d"])
def test_adr_0043_cli_the_range_is_the_servers_to_refuse(live, typed):
    """59 s and 24 h 1 s are refused by the board, with exit 1 and its sentence; the value stays."""
    live.type("endpoint", "vend", "reviewer", "--lease-ttl", "45m")
    refused = live.type("endpoint", "edit", "reviewer", "--lease-ttl", typed, code=1)
    assert refused.stderr.startswith("tenure: --lease-ttl must be 1m to 24h: ")
    assert "from 60 to 86400" in refused.stderr
    assert live.read("endpoint", "show", "reviewer")["default_lease_ttl_seconds"] == 2700


def test_b48_an_endpoint_is_named_by_slug_id_or_its_only_name(live):
    """Slug and id always; a name only while one active endpoint has it."""
    first = live.read("endpoint", "vend", "twin")["endpoint"]
    assert live.read("endpoint", "show", "twin")["id"] == first["id"]
    second = live.read("endpoint", "vend", "twin")["endpoint"]
    refused = live.type("endpoint", "show", "twin", code=3)
    assert first["slug"] in refused.stderr
    assert second["slug"] in refused.stderr
    assert live.read("endpoint", "show", second["slug"])["id"] == second["id"]
    assert live.read("endpoint", "show", first["id"])["slug"] == first["slug"]
    live.type("endpoint", "revoke", first["slug"])
    assert live.read("endpoint", "show", "twin")["id"] == second["id"]
    assert "Did you mean" in live.type("endpoint", "show", "twim", code=3).stderr


def test_a_second_endpoint_of_a_name_is_vended_with_a_warning(live):
    """By its name it is found no more; of an ended one nothing is said."""
    assert "warning" not in live.type("endpoint", "vend", "twin").stderr
    assert "another active endpoint has the name twin" in live.type("endpoint", "vend", "twin").stderr
    for one in live.read("endpoint", "list")["endpoints"]:
        live.type("endpoint", "revoke", one["slug"])
    assert "warning" not in live.type("endpoint", "vend", "twin").stderr


def test_b25_revoking_tells_how_many_todos_died(live):
    """Those of this moment, not what was dead or done before; and what moves them."""
    live.type("endpoint", "vend", "reviewer")
    assert "died" not in live.type("endpoint", "revoke", "reviewer").stderr
    live.type("endpoint", "vend", "reviewer")
    for title in ("one", "two", "three"):
        todo = live.type("todo", "add", "reviewer", title).stdout.strip()
    live.type("todo", "cancel", todo)
    said = live.type("endpoint", "revoke", "reviewer").stderr
    assert "2 todos died with it" in said
    assert "tenure todo move" in said


def test_b25_rotating_tells_what_becomes_of_the_one_before(live):
    """It ends now, unless --overlap keeps it."""
    live.type("endpoint", "vend", "reviewer")
    assert "The one before has ended" in live.type("endpoint", "rotate", "reviewer").stderr
    assert "The one before ends in 1h." in live.type("endpoint", "rotate", "reviewer", "--overlap", "1h").stderr


def test_b39_what_is_no_friend_code_is_refused_here(live):
    """Only what has the shape of one is asked for; small letters are as good."""
    assert "is no friend code" in live.type("friend", "request", "foo", "--queue", "docs", code=2).stderr
    code = live.read("auth", "status")["friend_code"]
    asked = live.as_("bob").read("friend", "request", code.lower(), "--queue", "docs")
    told = live.as_("alice").type("friend", "approve", asked["id"])
    assert "your friend has 7d to collect it" in told.stderr


def test_a_length_of_time_that_was_just_typed_is_told_as_it_was_typed(live):
    """30d is not 29d23h as soon as a second has passed."""
    assert "in 30d" in live.type("endpoint", "vend", "reviewer", "--expires", "30d").stdout
    assert "in 30d" in live.type("endpoint", "show", "reviewer").stdout


def test_b48_json_is_the_boards_body(live):
    """What --json prints is what REST answers, key for key."""
    told = live.read("endpoint", "vend", "reviewer", "--no-save")
    assert set(told) == {"endpoint", "credential", "mcp_url"}
    assert told["mcp_url"] == f"{live.board.settings.public_url}/mcp/{told['endpoint']['slug']}"
    assert live.read("endpoint", "list")["endpoints"] == [told["endpoint"]]


def test_b48a_no_save_keeps_no_credential(live):
    """Vended with --no-save, `tenure work` finds no credential, and says where one would come from."""
    live.type("endpoint", "vend", "reviewer", "--no-save")
    assert "tenure endpoint vend" in live.type("work", "reviewer", "--", "true", code=4).stderr


def test_b26_bob_and_charlie_see_nothing_of_alices(live):
    """For both, Alice's endpoint and todo are what an unknown one is, in every command."""
    endpoint = live.read("endpoint", "vend", "reviewer")["endpoint"]
    todo = live.read("todo", "add", "reviewer", "secret")["todo"]["id"]
    for other in ("bob", "charlie"):
        live.as_(other)
        assert live.read("endpoint", "list") == {"endpoints": []}
        assert live.read("todo", "list")["todos"] == []
        for words in (["endpoint", "show"], ["endpoint", "revoke"], ["endpoint", "rotate"]):
            known = live.type(*words, endpoint["slug"], code=3).stderr
            assert known.replace(endpoint["slug"], "NAME") == live.type(*words, "NAME", code=3).stderr
        for words in (["todo", "show"], ["todo", "cancel"], ["todo", "retry"], ["todo", "release"]):
            assert live.type(*words, todo, code=3).stderr == live.type(*words, "td_unknown", code=3).stderr


def test_b39_a_friend_asks_is_approved_and_collects(live):
    """Bob asks by Alice's code, Alice narrows and approves, Bob collects once, and works; Alice ends it."""
    code = live.read("auth", "status")["friend_code"]
    live.as_("bob")
    asked = live.read("friend", "request", code, "--queue", "docs", "--queue", "code", "--reason", "to help")
    live.as_("alice")
    live.type("friend", "approve", asked["id"], "--agent", "helper", "--queue", "docs", "--lease-ttl", "20m")
    slug = live.read("friend", "list")["friendships"][0]["endpoint"]
    live.type("todo", "add", slug, "read the docs")
    live.as_("bob")
    live.type("friend", "collect", asked["id"])
    live.type("friend", "collect", asked["id"], code=1)
    live.type("endpoint", "show", slug, code=3)
    live.type("work", slug, "--max", "1", "--", "true")
    live.as_("alice")
    assert live.read("todo", "list")["todos"][0]["shown"] == "done"
    live.type("friend", "end", asked["id"])
    assert live.read("endpoint", "show", slug)["state"] == "revoked"


def test_b39_an_approval_is_vended_on_an_agent_of_the_friend_s_name(live):
    """Without --agent; a request that is not there is refused as such."""
    code = live.read("auth", "status")["friend_code"]
    asked = live.as_("bob").read("friend", "request", code, "--queue", "docs")
    live.as_("alice").type("friend", "approve", "fr_unknown", code=3)
    slug = live.read("friend", "approve", asked["id"])["endpoint"]
    assert live.read("endpoint", "show", slug)["agent"] == "bob"


def test_a_sign_in_link_is_for_a_browser(live):
    """Given to `auth login` it is refused with what to do, and is not shown again."""
    link = f"{live.url}/login/tenure_link_{'x' * 49}"
    refused = live.type("auth", "login", link, code=2)
    assert f"tenure auth login {live.url}" in refused.stderr
    assert "tenure_link_" not in refused.stderr


def test_commands_without_a_sign_in_say_so(live):
    """Exit 4, and the command that signs in."""
    live._patch.delenv("TENURE_TOKEN")
    for words in (["endpoint", "list"], ["todo", "list"], ["auth", "status"], ["schedule", "list"], ["friend", "list"]):
        assert "tenure auth login" in live.type(*words, code=4).stderr
    live._patch.setenv("TENURE_TOKEN", "tenure_human_" + "x" * 49)
    live.type("endpoint", "list", code=4)


def test_b48a_a_credential_that_can_not_be_kept_is_shown_all_the_same(live, tmp_path):
    """It was made, and is shown just once: where it can't be kept the user is told so, and sees it."""
    (tmp_path / "file").write_text("")
    live._patch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    vended = live.type("endpoint", "vend", "reviewer")
    assert "credential  tenure_" in vended.stdout
    assert "It is not kept here, so note it down: " in vended.stderr
    assert live.read("endpoint", "rotate", "reviewer")["credential"].startswith("tenure_")


def test_b48a_commands_that_keep_something_at_once_lose_nothing(tmp_path, monkeypatch):
    """The file is read, changed and replaced by one command at a time."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    url = "http://board.example"

    def keep(number):
        keeping.keep_credential(url, f"slug-{number}", str(number), "reviewer", "c")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(keep, range(80)))
    assert len(keeping.read()["servers"][url]["endpoints"]) == 80


def test_b48a_a_folder_that_knows_no_locks_is_good_enough(tmp_path, monkeypatch):
    """A home on a network file system, say: what is to be kept is kept, as it would be by one command alone."""

    def no_lock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_lock)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "It is kept in " in keeping.keep_shown("http://board.example", "slug", "id", "reviewer", "secret")
    assert keeping.credential("http://board.example", "slug") == "secret"
