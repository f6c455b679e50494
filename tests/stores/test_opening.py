import sys

import pytest

from tenure.errors import ConfigError, MissingExtra
from tenure.stores import opening
from tenure.stores.memory import MemoryStore
from tenure.stores.opening import Row, redact, store_from_url
from tenure.stores.sqlite import SqliteStore

HIDDEN = "hunter2"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///tenure.db", "tenure.db"),
        ("sqlite:///data/tenure.db", "data/tenure.db"),
        ("sqlite:////var/lib/app/tenure.db", "/var/lib/app/tenure.db"),
        ("SQLite:///tenure.db?timeout=2.5", "tenure.db"),
        ("  sqlite:///a%20b%23c.db ", "a b#c.db"),
    ],
)
def test_r42_sqlite_urls(url, path):
    """Three slashes name a file in this folder, four a full path; escapes are read."""
    store = store_from_url(url)
    assert isinstance(store, SqliteStore)
    assert store._settings.path == path


def test_r42_sqlite_options():
    """Options are read from the URL; those given beside it win."""
    url = "sqlite:///a.db?prefix=jobs_&synchronous=NORMAL&timeout=2s&allow_network_fs=1"
    told = store_from_url(url, timeout=3, prefix=None)._settings
    assert (told.prefix, told.synchronous, told.timeout, told.allow_network_fs) == ("jobs_", "normal", 3.0, True)
    plain = store_from_url("sqlite:///a.db")._settings
    assert (plain.prefix, plain.synchronous, plain.timeout, plain.allow_network_fs) == ("tenure_", "full", 5.0, False)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("tenure.db", ["is no URL", "sqlite:///tenure.db"]),
        ("", ["is no URL", "memory://"]),
        ("sqlite:tenure.db", ["is no URL"]),
        ("sqlite://", ["names no file", "sqlite:///name.db"]),
        ("sqlite:///", ["names no file"]),
        ("sqlite:///folder/", ["names no file"]),
        ("sqlite://tenure.db", ["two slashes", "'tenure.db'", "sqlite:///name.db"]),
        ("sqlite://server/tenure.db", ["two slashes", "'server'"]),
        (f"sqlite://me:{HIDDEN}@server/tenure.db", ["two slashes", "'server'"]),
        ("sqlite:///:memory:", ["memory://"]),
        ("sqlite:///a.db#x", ["%23"]),
        ("sqlite://[", ["can't be read as a URL"]),
        ("memory://[", ["can't be read as a URL"]),
        ("postgresql://\ud800/db", ["can't be read as a URL"]),
        (f"redis://host/{'1' * 5_000}", ["db", "from 0 to 10000"]),
        ("sqlite:///a%00b.db", ["NUL"]),
        ("sqlite:///a.db?timeout=0.01", ["timeout", "0.01", "0.1 to 60"]),
        ("sqlite:///a.db?timeout=61", ["timeout", "61"]),
        ("sqlite:///a.db?timeout=soon", ["timeout", "soon"]),
        ("sqlite:///a.db?synchronous=off", ["synchronous", "'off'", "power cut"]),
        ("sqlite:///a.db?prefix=1x", ["prefix", "'1x'", "40"]),
        ("sqlite:///a.db?prefix=x;drop", ["prefix"]),
        ("sqlite:///a.db?prefix=sqlite_x", ["prefix"]),
        ("sqlite:///a.db?prefix=", ["prefix"]),
        ("sqlite:///a.db?allow_network_fs=maybe", ["allow_network_fs", "1 or 0"]),
        ("sqlite:///a.db?syncronous=full", ["syncronous", "Did you mean synchronous?"]),
        ("sqlite:///a.db?zzz=1", ["zzz", "timeout"]),
        ("sqlit:///a.db", ["sqlit://", "Did you mean sqlite://?"]),
        ("postgress://h/db", ["Did you mean postgres"]),
        ("mysql://h/db", ["mysql://", "sqlite://", " and memory://"]),
        (f"mysql://me:{HIDDEN}@h/db?password={HIDDEN}", ["mysql://me:***@h/db"]),
        ("memory://a/b", ["memory://name"]),
        ("memory://?timeout=1", ["memory://name"]),
    ],
)
def test_r42_refused_urls(url, words):
    """Each refusal is one sentence or two that say what, why and what to do, and shows no password."""
    with pytest.raises(ConfigError) as told:
        store_from_url(url)
    sentence = str(told.value)
    for word in words:
        assert word in sentence
    assert HIDDEN not in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("scheme", opening.STORES)
def test_r42_every_scheme_has_a_store(scheme):
    """Each row of the table names a class that is there, and an extra for all that need a driver."""
    row = opening.STORES[scheme]
    assert opening._class(scheme, row).__name__ == row.cls
    assert row.extra or scheme == "sqlite"


def test_r42_a_missing_driver_names_its_extra(monkeypatch, tmp_path):
    """A store whose driver is not installed says which extra brings it; any other missing module is a fault."""
    (tmp_path / "needs_a_driver.py").write_text("import no_such_driver\n")
    (tmp_path / "needs_our_own.py").write_text("import tenure.no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(opening.STORES, "strange", Row("needs_a_driver", "Store", "strange"))
    with pytest.raises(MissingExtra, match=r'pip install "tenure\[strange\]"'):
        store_from_url("strange://host")
    monkeypatch.setitem(opening.STORES, "ours", Row("needs_our_own", "Store", "ours"))
    with pytest.raises(ModuleNotFoundError):
        store_from_url("ours://host")


def test_r42_a_store_is_imported_when_it_is_asked_for(monkeypatch):
    """Opening one store brings in no other."""
    for name in [name for name in sys.modules if name.startswith("tenure.stores.sqlite")]:
        monkeypatch.delitem(sys.modules, name)
    store_from_url("memory://")
    assert "tenure.stores.sqlite" not in sys.modules


def test_r42_memory_stores():
    """memory:// is a new one each time, memory://name the same within the process."""
    first, second = store_from_url("memory://"), store_from_url("memory://")
    assert isinstance(first, MemoryStore)
    assert first is not second
    assert store_from_url("memory://shared") is store_from_url("memory://shared")
    assert store_from_url("memory://shared") is not store_from_url("memory://other")
    assert store_from_url("memory://shared").url == "memory://shared"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///tenure.db", "sqlite:///tenure.db"),
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("redis://:hunter2@host", "redis://:***@host"),
        ("postgresql://me:hunter2@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("postgresql://me:hun@ter2@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:hun:ter2@host/db", "postgresql://me:***@host/db"),
        ("postgresql://host/db?user=me&password=hunter2&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ("postgresql://h/db?sslpassword=hunter2", "postgresql://h/db?sslpassword=***"),
        ("redis+sentinel://a:hunter2@h1,b:x@h2/0?sentinel_password=hunter2", "redis+sentinel://a:***@h2/0?sentinel_password=***"),
        ("me:hunter2@host/db", "me:***@host/db"),
        ("redis://:hunter2/a@host/0", "redis://:***@host/0"),
        ("redis://me:hunter2?#a@host/0", "redis://me:***@host/0"),
        ("sqlite:///a@b.db", "sqlite:///a@b.db"),
    ],
)  # fmt: skip
def test_redacted_urls(url, shown):
    """A password is shown nowhere, whatever it is made of."""
    assert redact(url) == shown
    assert "hunter2" not in redact(url)
