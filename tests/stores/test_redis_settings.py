"""URLs of Redis and Valkey stores, and what servers and the driver say in our words; needs no server."""

import pytest
from redis import exceptions as driver

from tenure.errors import (
    ConfigError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooOld,
    StoreUnavailable,
)
from tenure.stores.contract import Change, Mark
from tenure.stores.opening import store_from_url
from tenure.stores.redis import RedisStore
from tenure.stores.redis.checks import _must, _should, check, parsed
from tenure.stores.redis.documents import SLOTS, bucket_of, commit_calls, mark
from tenure.stores.redis.node import _plainly, packed
from tenure.stores.redis.refusals import code, refusal
from tenure.stores.redis.settings import settings

HIDDEN = "hunter2"


@pytest.mark.parametrize(
    ("url", "kind", "wanted"),
    [
        ("redis://host", "single", {"addresses": (("host", 6379),), "db": 0, "prefix": "tenure", "timeout": 5.0}),
        ("valkey://host:7000/3", "single", {"addresses": (("host", 7000),), "db": 3, "tls": None}),
        ("redis://[::1]:7000", "single", {"addresses": (("::1", 7000),)}),
        (f"redis://me:{HIDDEN}@host", "single", {"username": "me", "password": HIDDEN}),
        (f"redis://:{HIDDEN}@host", "single", {"username": None, "password": HIDDEN}),
        ("redis://me:hun%40ter%2F2@host", "single", {"password": "hun@ter/2"}),
        (f"redis://host?password={HIDDEN}&username=me", "single", {"username": "me", "password": HIDDEN}),
        ("unix:///run/redis.sock?db=2", "unix", {"path": "/run/redis.sock", "db": 2}),
        ("redis+cluster://a:1,b:2", "cluster", {"addresses": (("a", 1), ("b", 2))}),
        ("redis+sentinel://a,b:2/main", "sentinel", {"addresses": (("a", 26379), ("b", 2)), "service": "main"}),
        ("redis+sentinel://a/main/4", "sentinel", {"service": "main", "db": 4}),
        ("redis://h?prefix=jobs:x&timeout=250ms", "single", {"prefix": "jobs:x", "timeout": 0.25}),
        ("redis://h?wait_replicas=2", "single", {"wait_replicas": 2}),
    ],
)  # fmt: skip
def test_r42_urls(url, kind, wanted):
    """What each kind of URL says."""
    told = settings(url)
    assert told.kind == kind
    assert {name: getattr(told, name) for name in wanted} == wanted
    assert HIDDEN not in told.shown
    assert HIDDEN not in repr(told)
    assert HIDDEN not in RedisStore(url).url


def test_r42_tls():
    """rediss:// and tls=1 ask for TLS, and check the certificate unless told not to."""
    assert settings("rediss://h").tls.cert_reqs == "required"
    assert settings("valkeys://h").tls.check_hostname
    assert settings("redis+cluster://h?tls=1&ssl_ca_certs=/ca.pem").tls.ca_certs == "/ca.pem"
    assert not settings("rediss://h?ssl_cert_reqs=none").tls.check_hostname


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://", ["no host and port"]),
        ("redis://a,b", ["several servers", "redis+cluster://"]),
        ("redis://h:port", ["'h:port'"]),
        ("redis://h/x", ["db", "'x'", "whole number"]),
        ("redis://h/1/2", ["more than one database"]),
        ("redis://h/1?db=2", ["more than one database"]),
        ("redis://h#x", ["%23"]),
        ("unix://run/redis.sock", ["three slashes"]),
        ("redis+sentinel://h", ["names no service"]),
        ("redis+cluster://h/1", ["only 0"]),
        ("redis://h?prefix={x}", ["prefix", "40 letters"]),
        ("redis://h?timeout=0.01", ["timeout", "0.1 to 60"]),
        ("redis://h?timeout=soon", ["timeout", "soon"]),
        ("redis://h?wait_replicas=-1", ["wait_replicas", "from 0"]),
        ("redis://h?wait_replica=1", ["Did you mean wait_replicas?"]),
        ("redis://h?zzz=1", ["zzz", "prefix"]),
        ("redis://h?ssl_ca_certs=/x", ["without TLS", "rediss://"]),
        ("rediss://h?ssl_cert_reqs=maybe", ["ssl_cert_reqs", "required"]),
        ("redis://h?tls=maybe", ["tls", "1 or 0"]),
        (f"redis://me:{HIDDEN}@h:port", ["'h:port'"]),
        (f"redis://me:{HIDDEN}@[h", ["can't be read as a URL"]),
    ],
)
def test_r42_refused_urls(url, words):
    """Each refusal says what, why and what to do, and shows no password."""
    with pytest.raises(ConfigError) as told:
        store_from_url(url)
    for word in words:
        assert word in str(told.value)
    assert HIDDEN not in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("error", "cls", "word"),
    [
        (driver.MovedError("1 h:1"), StoreUnavailable, "MOVED"),
        (driver.AskError("1 h:1"), StoreUnavailable, "ASK"),
        (driver.TryAgainError("Multiple keys"), StoreUnavailable, "TRYAGAIN"),
        (driver.ClusterDownError("CLUSTERDOWN The cluster is down"), StoreUnavailable, "CLUSTERDOWN"),
        (driver.MasterDownError("MASTERDOWN Link"), StoreUnavailable, "MASTERDOWN"),
        (driver.BusyLoadingError("Redis is loading"), StoreUnavailable, "LOADING"),
        (driver.ReadOnlyError("You can't write"), StoreReadOnly, "READONLY"),
        (driver.OutOfMemoryError("command not allowed"), StoreFull, "OOM"),
        (driver.NoPermissionError("this user has no permissions"), StoreError, "NOPERM"),
        (driver.AuthenticationError("x"), StoreError, "WRONGPASS"),
        (driver.AuthenticationError("Authentication required."), StoreError, "NOAUTH"),
        (driver.ResponseError("BUSY Redis is busy running a script"), StoreBusy, "BUSY"),
        (driver.ResponseError("NOREPLICAS Not enough good replicas to write."), StoreUnavailable, "NOREPLICAS"),
        (driver.ResponseError("MISCONF Redis is configured to save RDB"), StoreFull, "MISCONF"),
        (driver.ResponseError("WRONGTYPE Operation against a key"), StoreCorrupt, "WRONGTYPE"),
        (driver.ResponseError("Error running script (call to f_1): @user_script:1: -OOM command"), StoreFull, "OOM"),
        (driver.ResponseError("unknown command 'X'"), StoreTooOld, ""),
        (driver.ResponseError("something new"), StoreError, ""),
        (driver.ConnectionError("max number of clients reached"), StoreUnavailable, ""),
        (driver.ConnectionError("Connection refused"), StoreUnavailable, ""),
        (driver.TimeoutError("x"), StoreUnavailable, ""),
        (OSError(111, "refused"), StoreUnavailable, ""),
    ],
)
def test_refusals(error, cls, word):
    """Each answer of a server becomes the right error, in one sentence or two with what to do."""
    assert code(error) == word
    told = refusal(error, "redis://h")
    assert type(told) is cls
    assert str(told).startswith("redis://h ")
    assert str(told).endswith(".")
    assert "\n" not in str(told)


async def test_r42_too_old():
    """What is too old is refused, with its version."""

    class Old:
        shown = "redis://h"

        async def ask(self, calls):
            return [[b"server", b"redis", b"version", b"6.0.16"], b"", [], 0, [1]], None

    with pytest.raises(StoreTooOld, match=r"Redis 6\.0\.16, and Tenure needs Redis 6\.2"):
        await check([Old()], settings("redis://h"))
    with pytest.raises(StoreUnavailable, match="loading"):
        _must("h", parsed(b"redis_version:7.0.0\r\nloading:1\r\n"), settings("redis://h"))


def test_r43_warnings():
    """A sound server is not warned of."""
    sound = parsed(
        b"maxmemory_policy:noeviction\r\naof_enabled:1\r\nconnected_slaves:1\r\nmin_slaves_good_slaves:1\r\n"
    )
    assert _should(sound, "") == []
    assert len(_should({**sound, "maxmemory_policy": "volatile-ttl", "aof_enabled": "0"}, "60 1")) == 2


def test_names_lie_where_they_always_lay():
    """The bucket of a name and its slot never change: documents would be lost."""
    assert [bucket_of(name) for name in ("job:nightly", "a", "日本", "{x}")] == [30, 67, 204, 220]
    assert len(set(SLOTS)) == 256


def test_r43_all_keys_of_a_document_share_a_slot():
    """Whatever a name is made of: braces, separators, nothing else."""
    from redis.crc import key_slot

    for name in ("job:nightly", "{a}", "}{", "{", "a:{b}:c", "日本{", "x" * 200):
        change = Change(name, 0, b"", marks=(Mark(1, 1, 1, "", "", 1, ""),), trim=1, forget=("1",))
        ((call, _),) = commit_calls("p", [change], apart=True)
        keys = call.arguments[1 : 1 + int(call.arguments[0])]
        assert {key_slot(key.encode()) for key in keys} == {call.slot}
        assert all(name in key or key.endswith(":names") for key in keys)


def test_commands_are_packed_alike():
    """The plain packer, for a driver without hiredis, packs as the fast one does."""
    command = ["EVALSHA", "é", b"\0\xff", ""]
    assert _plainly(command) == packed(command)


def test_marks_as_they_stand():
    """Ends before 1970 keep the order of their numbers."""
    assert mark(b"0999999999999995request\x1f-9\x1f3\x1f4\x1fwhy\x1fwhom\x1fby") == Mark(
        -9, -5, 3, "why", "whom", 4, "by", "request"
    )
