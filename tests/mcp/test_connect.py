"""`tenure endpoint connect`: settings that a client reads, without the secret in them."""

import json

import pytest
from click.testing import CliRunner

from tenure.doors.cli import keeping
from tenure.doors.cli.root import cli

URL, SLUG, SECRET = "http://127.0.0.1:8420", "reviewer-ab23", "tenure_endpoint_" + "s" * 49
FILES = {"claude": ".mcp.json", "cursor": ".cursor/mcp.json", "vscode": ".vscode/mcp.json"}
KEYS = {"claude": "mcpServers", "cursor": "mcpServers", "vscode": "servers"}


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    """An empty folder to work in, and one endpoint whose credential is kept."""
    for name in ("TENURE_URL", "TENURE_TOKEN", "TENURE_ENDPOINT_CREDENTIAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    keeping.keep_credential(URL, SLUG, "an-id", "reviewer", SECRET)
    return tmp_path / "work"


def tenure(*arguments, code=0):
    """What a command says; its exit code is as expected, and the secret is in none of it."""
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == code, result.output
    assert SECRET not in result.output
    return result


def connect(*arguments, code=0):
    return tenure("endpoint", "connect", *arguments, code=code)


@pytest.mark.parametrize("client", FILES)
@pytest.mark.parametrize("named", [SLUG, "an-id", "reviewer"])
def test_settings_are_printed_as_the_client_reads_them(client, named):
    """Address, and the credential by reference: an environment variable, or what VS Code asks for."""
    result = connect(named, "--client", client)
    told = json.loads(result.stdout)
    entry = told[KEYS[client]][SLUG]
    assert entry["url"] == f"{URL}/mcp/{SLUG}"
    assert entry.get("type") == (None if client == "cursor" else "http")
    reference = entry["headers"]["Authorization"].removeprefix("Bearer ")
    assert reference.startswith("${")
    if client == "vscode":
        (asked,) = told["inputs"]
        assert asked["password"] is True
        assert reference == f"${{input:{asked['id']}}}"
    else:
        assert "TENURE_ENDPOINT_CREDENTIAL" in reference
        assert "TENURE_ENDPOINT_CREDENTIAL" in result.stderr
    assert FILES[client] in result.stderr


@pytest.mark.parametrize("client", FILES)
def test_settings_for_a_client_without_http_start_the_bridge(client):
    """`tenure mcp` and the address of the board: nothing else is to be set."""
    entry = json.loads(connect("reviewer", "--client", client, "--stdio").stdout)[KEYS[client]][SLUG]
    assert [entry["command"], *entry["args"]] == ["tenure", "mcp", SLUG]
    assert entry["env"] == {"TENURE_URL": URL}


@pytest.mark.parametrize("client", FILES)
def test_settings_are_written_into_the_clients_file_and_others_stay(kept, client):
    """Written twice they stand there once; other servers, and what else is in the file, are left alone."""
    path = kept / FILES[client]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"other": 1, KEYS[client]: {"another": {"url": "x"}}}))
    for _ in range(2):
        connect("reviewer", "--client", client, "--write")
    told = json.loads(path.read_text())
    assert told["other"] == 1
    assert set(told[KEYS[client]]) == {"another", SLUG}
    assert len(told.get("inputs", [])) == (1 if client == "vscode" else 0)


@pytest.mark.parametrize("text", ["// a comment\n{}", "[]", '{"mcpServers": []}', "\0"])
def test_a_file_that_can_not_be_merged_is_left_as_it_is(kept, text):
    """The refusal names it and says what to do."""
    (kept / ".mcp.json").write_text(text)
    assert "without --write" in connect("reviewer", "--write", code=2).stderr
    assert (kept / ".mcp.json").read_text() == text


def test_settings_that_can_not_be_written_are_refused_in_a_sentence(kept):
    """A file stands where the client's folder would be: the refusal names it, and is no fault of ours."""
    (kept / ".cursor").write_text("")
    told = connect("reviewer", "--client", "cursor", "--write", code=2).stderr
    assert "can't be written: " in told
    assert "without --write" in told


def test_an_endpoint_that_is_not_kept_here_is_exit_3_with_what_to_do():
    """There is nothing to connect with."""
    assert "tenure endpoint vend" in connect("unknown", code=3).stderr


def test_the_bridge_without_a_credential_is_exit_4():
    """And says where to get one."""
    assert "tenure endpoint vend" in tenure("mcp", "unknown", code=4).stderr


@pytest.mark.parametrize(
    "text",
    [
        "[]", "{", '{"server": 5}', '{"servers": []}', '{"servers": {"x": 1}}', '{"servers": {"x": {"token": 5}}}',
        '{"servers": {"x": {"endpoints": {"a": "b"}}}}', '{"servers": {"x": {"endpoints": {"a": {"credential": 7}}}}}',
    ],
)  # fmt: skip
def test_b48a_a_file_of_credentials_of_another_shape_is_told_in_a_sentence(kept, text):
    """Whoever edited it by hand hears which file it is, and it stays as it is."""
    keeping.place().write_text(text)
    assert "can't be read" in connect("reviewer", code=2).stderr
    assert keeping.place().read_text() == text
