"""The pages are what the code does: drawings are fresh, examples run, links and named tests exist."""

import asyncio
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tenure import Tenure

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
# Fences at the beginning of a line: the language, and what is to be done with it.
FENCE = re.compile(r"^```(?P<language>\w*)(?: (?P<how>\w+))?\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)
NAMED = re.compile(r"`(?P<place>tests/[\w/]+\.py)?(?:::)?(?P<test>test_\w+)`")

# What a short example may leave out.
GIVEN = "from tenure import Run, Tenure; app = Tenure('memory://')\n"


def name(page):
    return page.relative_to(ROOT).as_posix()


def blocks(language, how=None):
    """Every block of this language, as (page, line, body)."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for fence in FENCE.finditer(text):
            if fence["language"] == language and how in (None, fence["how"]):
                line = text.count("\n", 0, fence.start()) + 2
                found.append(pytest.param(page, line, fence["body"], id=f"{name(page)}:{line}"))
    return found


def prose(page):
    """A page without its code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def test_what_is_drawn_is_fresh():
    """Diagrams and tables are those that the code draws today: else run `python docs/draw.py`."""
    told = subprocess.run(
        [sys.executable, str(DOCS / "draw.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize(("page", "line", "body"), blocks("python", "run"))
def test_an_example_runs(page, line, body, tmp_path, monkeypatch):
    """Each `python run` block runs as a program of its own, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    source = "\n" * (line - 2) + GIVEN + body
    exec(compile(source, str(page), "exec"), {"__name__": "example"})  # noqa: S102 - these are our own pages


@pytest.mark.parametrize(("page", "line", "body"), blocks("python", "pytest"))
def test_an_example_of_tests_passes(page, line, body, tmp_path):
    """Each `python pytest` block is a test file that passes, with nothing but the plugin that Tenure brings."""
    file = tmp_path / "test_example.py"
    file.write_text(body, encoding="utf-8")
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout


@pytest.mark.parametrize(("page", "line", "body"), blocks("python"))
def test_every_python_block_is_run(page, line, body):
    """An example that nobody runs would rot."""
    runnable = {(one.values[0], one.values[1]) for how in ("run", "pytest") for one in blocks("python", how)}
    assert (page, line) in runnable


@pytest.mark.parametrize(("page", "line", "body"), blocks("sql", "run"))
def test_statements_for_the_shell_run(page, line, body, tmp_path):
    """On a store with a run that has ended, one that is under way, and a slot that was skipped: each finds rows."""
    copy = tmp_path / "copy.db"
    asyncio.run(live(tmp_path / "tenure.db", copy))
    connection = sqlite3.connect(copy)
    answers = [connection.execute(one).fetchall() for one in body.split(";") if one.strip()]
    connection.close()
    assert [len(rows) > 0 for rows in answers] == [True] * len(answers)


async def live(file, copy):
    """Do some work in a store, and copy it in the middle of that."""
    app = Tenure(f"sqlite:///{file}")
    ended, skipped, begun, let_go = (asyncio.Event() for _ in range(4))
    app.on("success", lambda event: ended.set())
    app.on("skip", lambda event: skipped.set())

    @app.job()
    def report():
        return {"rows": 3}

    @app.job()
    async def slow():
        begun.set()
        await let_go.wait()

    async with app:
        app.trigger("report")
        await ended.wait()
        app.pause("report")
        app.trigger("report")
        app.trigger("slow")
        await skipped.wait()
        await begun.wait()
        connection = sqlite3.connect(file)
        connection.execute("VACUUM INTO ?", (str(copy),))
        connection.close()
        let_go.set()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    """Each link between pages names a file, and a heading where it says so."""
    for link in LINK.finditer(prose(page)):
        target, _, heading = link["target"].partition("#")
        if re.match(r"\w+:", target):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{name(page)}: {link['target']}"
        if heading:
            assert heading in anchors(file), f"{name(page)}: {link['target']}"


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    texts = [found["text"].lower() for found in HEADING.finditer(prose(page))]
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts}


def test_every_page_is_on_the_map():
    """The index names each page."""
    linked = {(DOCS / link["target"]).resolve() for link in LINK.finditer(prose(DOCS / "index.md"))}
    assert {page for page in DOCS.glob("*.md") if page.name != "index.md"} <= linked
    folder = DOCS / "adr"
    decisions = {(folder / link["target"]).resolve() for link in LINK.finditer(prose(folder / "README.md"))}
    assert set(folder.glob("0*.md")) <= decisions


@pytest.mark.parametrize("page", [page for page in PAGES if NAMED.search(prose(page))], ids=name)
def test_named_tests_exist(page):
    """A test that a page names is in the suite, in the file that it says."""
    known = {}
    for file in (ROOT / "tests").rglob("test_*.py"):
        for test in re.findall(r"^(?:async )?def (test_\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE):
            known.setdefault(test, set()).add(file.relative_to(ROOT).as_posix())
    for found in NAMED.finditer(prose(page)):
        assert found["test"] in known, f"{name(page)}: {found['test']}"
        if found["place"]:
            assert found["place"] in known[found["test"]], f"{name(page)}: {found[0]}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pages_keep_to_themselves(page):
    """No path of a machine stands in them."""
    assert not re.search(r"(?<![\w.])/(?:home|root|work(?!/v1)|tmp|Users)/", page.read_text(encoding="utf-8"))
