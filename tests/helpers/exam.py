"""The exam's table, questions x stores: at the end of a run that put them to several stores, and in the docs.

A plugin of the suite. Each test named `test_r40_question` or `test_r40_random_sequences`, whichever file it stands
in, is one cell; its store is the parameter `hall` or `kind`. `--exam-table PAGE` writes a table that is whole and
free of failures between the marks of that page.
"""

import re
from pathlib import Path

import pytest

from tenure.proof.conformance import QUESTIONS, NotAskedError

# The parameter of the tests: heads of the column in a terminal and in the docs.
STORES = {
    "memory": ("memory", "memory"),
    "sqlite": ("SQLite", "SQLite"),
    "18": ("PG 18", "PostgreSQL 18"),
    "15": ("PG 15", "PostgreSQL 15"),
    "pgbouncer": ("bouncer", "18 through PgBouncer"),
    "redis62": ("Redis 6.2", "Redis 6.2"),
    "redis70": ("Redis 7.0", "Redis 7.0"),
    "valkey9": ("Valkey 9", "Valkey 9"),
    "cluster": ("cluster", "Valkey 9, cluster of three"),
}
RANDOM = "random_sequences"
OK, NOT_ASKED, FAILED, SKIPPED = "ok", "-", "FAILED", "skipped"
# What may stand in the docs.
SETTLED = {OK: "ok", NOT_ASKED: "–"}
PLACE = re.compile(r"(<!-- exam: written by `make exam` -->\n).*?(<!-- end -->)", re.DOTALL)


def rows():
    """All rows of the table: the name of a question, and what it asks."""
    asked = {name: (question.__doc__ or name).strip().partition("\n")[0] for name, question in QUESTIONS.items()}
    return {**asked, RANDOM: "Random reads, changes and commands end as they do in memory."}


def pytest_addoption(parser):
    parser.addoption("--exam-table", metavar="PAGE", help="write the exam's table into this page, if it is whole")


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table(config.getoption("--exam-table")))


def cell(item):
    """The question and the store of a test; None of one that is no part of the exam."""
    if getattr(item, "originalname", "") not in ("test_r40_question", f"test_r40_{RANDOM}"):
        return None
    parameters = item.callspec.params
    return parameters.get("question", RANDOM), parameters.get("hall") or parameters.get("kind")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if told := cell(item):
        item.user_properties.append(("exam", told))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A question that is none for a store passes its test: here it is noted."""
    question, _ = cell(item) or ("", "")
    if question not in QUESTIONS:
        return (yield)
    asked = QUESTIONS[question]

    async def noted(hall):
        try:
            await asked(hall)
        except NotAskedError:
            item.user_properties.append(("exam not asked", True))
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(QUESTIONS, question, noted)
        return (yield)


class Table:
    """What the run's controller gathers of all workers."""

    def __init__(self, page):
        self.page = page
        self.cells = {}
        self.said = ""

    def pytest_runtest_logreport(self, report):
        told = dict(report.user_properties)
        if "exam" in told and (report.when == "call" or not report.passed):
            passed = NOT_ASKED if "exam not asked" in told else OK
            self.cells[tuple(told["exam"])] = {"passed": passed, "failed": FAILED}.get(report.outcome, SKIPPED)

    def pytest_sessionfinish(self, session):
        if self.page is None:
            return
        wanting = [f"{name} on {STORES[store][1]}" for name in rows() for store in STORES
                   if self.cells.get((name, store)) not in SETTLED]  # fmt: skip
        if wanting:
            self.said = f"{self.page} was not written: no result yet, or a bad one, of {', '.join(wanting[:3])}, ..."
            session.exitstatus = session.exitstatus or 1
            return
        page = Path(self.page)
        page.write_text(PLACE.sub(rf"\1\n{self.markdown()}\n\n\2", page.read_text(encoding="utf-8")), encoding="utf-8")
        self.said = f"{self.page} has the table of this run."

    def markdown(self):
        heads = ["", *(title for _, title in STORES.values())]
        lines = [heads, ["---"] * len(heads)]
        lines += [[asked, *(SETTLED[self.cells[name, store]] for store in STORES)] for name, asked in rows().items()]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def pytest_terminal_summary(self, terminalreporter):
        stores = [store for store in STORES if any(store == one for _, one in self.cells)]
        names = [name for name in rows() if any(name == one for one, _ in self.cells)]
        if len(stores) > 1 and len(names) > 1:
            terminalreporter.section("the exam of the stores")
            wide = max(map(len, names))
            heads = {store: STORES[store][0] for store in stores}
            terminalreporter.line("  ".join([" " * wide, *heads.values()]))
            for name in names:
                told = [self.cells.get((name, store), "").ljust(len(head)) for store, head in heads.items()]
                terminalreporter.line("  ".join([name.replace("_", " ").ljust(wide), *told]).rstrip())
        if self.said:
            terminalreporter.line(self.said)
