"""docs/stores.md: every option and scheme, rights that suffice, and a table of the exam that is whole."""

import re
from dataclasses import fields
from pathlib import Path

import exam
import pytest

from tenure.stores.contract import Ask, Change, Mark, Outcome, Record
from tenure.stores.opening import STORES, store_from_url
from tenure.stores.postgres import settings as postgres
from tenure.stores.redis import settings as redis
from tenure.stores.sqlite import settings as sqlite

TEXT = (Path(__file__).parents[2] / "docs" / "stores.md").read_text(encoding="utf-8")


def section(title):
    """The text below one heading of the second level."""
    return re.split(r"^## ", TEXT.partition(f"\n## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize(
    ("title", "options"),
    [("SQLite", sqlite._OPTIONS), ("PostgreSQL", postgres._OPTIONS), ("Redis and Valkey", redis._OPTIONS)],
)
def test_every_option_is_told(title, options):
    """And none that there is not."""
    told = "\n".join(line.split(" | ")[0] for line in section(title).splitlines() if re.match(r"\| `\w+=", line))
    assert set(re.findall(r"`(\w+)=", told)) == set(options)


def test_every_scheme_is_told():
    """Each by which a store can be named."""
    assert {scheme for scheme in (*STORES, "memory") if f"`{scheme}://" not in section("URLs")} == set()


@pytest.mark.parametrize("of", [sqlite, postgres, redis], ids=lambda of: of.__name__)
def test_defaults_are_told(of):
    """The prefix and the timeout are those of the page."""
    defaults = {field.name: field.default for field in fields(of.Settings)}
    assert f"| `{defaults['prefix']}` |" in TEXT
    assert defaults["timeout"] == 5.0


def test_the_exam_table_is_whole():
    """It has each question and each store of today, and no failure: else run `make exam`."""
    heads, _, *lines = [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in section("The exam").splitlines()
        if line.startswith("|")
    ]
    assert heads[-len(exam.STORES) :] == [title for _, title in exam.STORES.values()]
    assert [line[0] for line in lines] == list(exam.rows().values())
    assert {cell for line in lines for cell in line[1:]} <= set(exam.SETTLED.values())


def block(begin):
    """The block of code that begins so."""
    return re.search(rf"^```\w*\n({re.escape(begin)}.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)[1]


async def all_is_allowed(url):
    """A store by this URL opens without a warning of rights, and does all that stores do."""
    store = store_from_url(url)
    warnings = await store.open()
    try:
        record, mark = Record("1", 1, "success", 2, 0, b"{}"), Mark(1, 1, 1, "late", "", 1, "me")
        change = Change("job:report", 0, b"{}", records=(record,), marks=(mark,), hint=True)
        assert (await store.commit([change])).outcomes == (Outcome.DONE,)
        pruned = Change("job:report", 1, b"{}", forget=("1",), trim=1)
        (found,) = (await store.read([Ask("job:report", runs=("1",), beyond=(0, 0), before=9)])).found
        assert found.last == 1
        assert (await store.commit([pruned])).outcomes == (Outcome.DONE,)
        assert await store.names("job:") == ("job:report",)
    finally:
        await store.close()
    return warnings


@pytest.mark.servers
async def test_the_grants_suffice(own_postgres):
    """A user with these rights, and no other, runs an instance on tables that somebody else has made."""
    await store_from_url(f"{own_postgres.url}?schema=jobs").upgrade()
    own_postgres.sql("CREATE ROLE app LOGIN")
    for grant in filter(str.strip, block("GRANT").split(";")):
        own_postgres.sql(grant)
    url = own_postgres.url.replace("tenure@", "app@")
    assert await all_is_allowed(f"{url}?schema=jobs&upgrade=0") == ()


@pytest.mark.servers
async def test_the_query_of_postgresql_runs(own_postgres):
    """It finds the columns that it names."""
    await store_from_url(f"{own_postgres.url}?schema=asked").upgrade()
    own_postgres.sql(block("-- the last ten runs of a job; body").replace("tenure_history", "asked.tenure_history"))


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["redis62", "redis70", "valkey9"])
async def test_the_acl_suffices(private, kind):
    """A user with these rights, and no other, runs an instance; those told beside it are for what they are told for."""
    server = private(kind, appendonly="yes")
    more = ["+multi", "+exec", "+persist"] if kind == "redis62" else []
    server.run(*block("ACL SETUSER app").split(), *more)
    (warning,) = await all_is_allowed(f"unix://app:password@{server.socket}")
    assert "INFO" in warning
    server.run("ACL", "SETUSER", "app", "+info", "+config|get", "+select")
    assert await all_is_allowed(f"unix://app:password@{server.socket}?db=1") == ()
