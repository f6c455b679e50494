"""Alice, Bob (Alice's friend) and Charlie (nobody) in every use case that a human can call (B26).

The use cases are found by looking: a function of the board's modules whose third argument is a Human. Each must stand
in the table below, so that one that is added without its isolation fails here.
"""

import importlib
import inspect
import itertools
import pkgutil
import typing

import pytest

import tenure.board
from tenure.board import (
    agents,
    audit,
    endpoints,
    friends,
    humans,
    schedules,
    signing_in,
    tables,
    todos,
    tokens,
    webhooks,
)
from tenure.board.access import Human
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.board.shapes import NewTodo
from tenure.rules.refusal import MISSING

# What of Alice's stands where in a call; the unknown one is put in its place.
UNKNOWN = {
    "endpoint": "never-2222",
    "endpoint_id": "00000000-0000-4000-8000-000000000000",
    "todo": "td_01q9gd6e000w7fhwa1kc52tnf3",
    "webhook": "wh_01q9gd6e000w7fhwa1kc52tnf3",
    "friendship": "fr_01q9gd6e000w7fhwa1kc52tnf3",
    "token": "tk_01q9gd6e000w7fhwa1kc52tnf3",
    "session": "se_01q9gd6e000w7fhwa1kc52tnf3",
    "schedule": "sc_01q9gd6e000w7fhwa1kc52tnf3",
    "schedule_name": "never was",
}
# What never was an id: no database, and no path, takes some of these as text.
MALFORMED = [dict.fromkeys(UNKNOWN, text) for text in ("", "\0", "\ud800", "0", "-1", "..", "\uff11", "x" * 10_000)]


class Of(typing.NamedTuple):
    """In a call: the id of something of Alice's."""

    kind: str


class Own:
    """In a call: an endpoint of the caller's own."""


PLAN = {"expression": "1h", "title": "x", "overlap": "allow"}
# One or more calls of each use case: its arguments after the human, with `Of` for what is Alice's.
CALLS = {
    "endpoints.get": [((Of("endpoint"),), {}), ((Of("endpoint_id"),), {})],
    "endpoints.credentials": [((Of("endpoint"),), {})],
    "endpoints.edit_lease": [((Of("endpoint"), 600), {}), ((Of("endpoint_id"), "bad", [7]), {})],
    "endpoints.set_display_name": [((Of("endpoint"), "x"), {})],
    "endpoints.set_era": [((Of("endpoint"), None), {})],
    "endpoints.set_presence": [((Of("endpoint"), "out"), {})],
    "endpoints.set_shift": [((Of("endpoint"), None), {})],
    "endpoints.rotate": [((Of("endpoint"),), {})],
    "endpoints.revoke": [((Of("endpoint"),), {})],
    "webhooks.create": [((), {"name": "x", "ref": Of("endpoint")})],
    "webhooks.list_all": [((Of("endpoint"),), {})],
    "webhooks.rotate": [((Of("webhook"), Of("endpoint")), {})],
    "webhooks.delete": [((Of("webhook"), Of("endpoint")), {})],
    "friends.get": [((Of("friendship"),), {})],
    "friends.approve": [((Of("friendship"),), {"agent": "x"})],
    "friends.decline": [((Of("friendship"),), {})],
    "friends.collect": [((Of("friendship"),), {})],
    "friends.allow_collect": [((Of("friendship"),), {})],
    "friends.end": [((Of("friendship"),), {})],
    "tokens.revoke": [((Of("token"),), {})],
    "signing_in.end_session": [((Of("session"),), {})],
    "todo_lists.get": [((Of("todo"),), {})],
    "todo_actions.cancel": [((Of("todo"),), {})],
    "todo_actions.retry": [((Of("todo"),), {})],
    "todo_actions.board_claim": [((Of("todo"),), {})],
    "todo_actions.board_extend": [((Of("todo"),), {})],
    "todo_actions.board_complete": [((Of("todo"),), {})],
    "todo_actions.board_fail": [((Of("todo"),), {})],
    "todo_actions.board_release": [((Of("todo"),), {})],
    "todo_actions.add_note": [((Of("todo"), "a note"), {})],
    "todo_actions.move": [((Of("todo"), Own), {})],
    "schedules.get": [((Of("schedule"),), {}), ((Of("schedule_name"),), {})],
    "schedules.add": [((Of("endpoint"), "x", PLAN), {})],
    "schedules.edit": [((Of("schedule"), PLAN), {})],
    "schedules.pause": [((Of("schedule"),), {})],
    "schedules.resume": [((Of("schedule"),), {})],
    "schedules.remove": [((Of("schedule"),), {})],
    "schedules.trigger": [((Of("schedule"),), {})],
    "schedules.history": [((Of("schedule"),), {})],
}
# Those that name nothing of anybody's: what they give is the caller's own, which the last test looks at.
OWN = {
    "agents.list_all", "agents.named", "audit.list_page", "endpoints.list_all", "endpoints.vend", "friends.list_all",
    "friends.request", "humans.friend_code", "humans.new_friend_code", "schedules.list_all", "signing_in.put_password",
    "signing_in.sessions", "depth.over_time", "todo_lists.counts", "todo_lists.list_page", "tokens.create",
    "tokens.list_all",
}  # fmt: skip
# No door's: these are given what another use case has found for the same human.
INNER = {"audit.write", "todos.create", "todos.create_many", "vending.end", "vending.make"}


def use_cases():
    """Every function of the board whose third argument may be a Human, by module and name."""
    found = {}
    for module in pkgutil.iter_modules(tenure.board.__path__):
        if module.ispkg:
            continue
        loaded = importlib.import_module(f"tenure.board.{module.name}")
        for name, case in inspect.getmembers(loaded, inspect.isfunction):
            parameters = list(inspect.signature(case).parameters.values())
            if case.__module__ != loaded.__name__ or name.startswith("_") or len(parameters) < 3:
                continue
            hints = typing.get_type_hints(case)
            third = hints.get(parameters[2].name)
            if hints.get(parameters[0].name) is Tx and Human in (third, *typing.get_args(third)):
                found[f"{module.name}.{name}"] = case
    return found


@pytest.fixture
def things(board, bobs_pass):
    """What is Alice's: an endpoint with a todo and a webhook, a friendship, a token, a session."""
    code = board.read(humans.friend_code, board.alice)
    asked = board.write(friends.request, board.bob, code, queues=["q"], verbs=["claim"])
    vended = board.vend()
    link = board.write(signing_in.link_for, "alice").reveal()
    return {
        "endpoint": vended.endpoint.slug,
        "endpoint_id": vended.endpoint.id,
        "todo": board.write(todos.create, board.alice, vended.endpoint, NewTodo("secret work")).todo.summary.id,
        "webhook": board.write(webhooks.create, board.alice, name="x", ref=vended.endpoint.slug).webhook.id,
        "friendship": asked.id,
        "token": board.write(tokens.create, board.alice, "laptop").token.id,
        "schedule": board.write(schedules.add, board.alice, vended.endpoint.slug, "nightly", PLAN).id,
        "schedule_name": "nightly",
        "session": board.write(signing_in.by_link, link).human.via_id,
    }


def everything(board):
    """All rows of all tables."""
    return {name: sorted(map(str, board.rows(table))) for name, table in tables.metadata.tables.items()}


def called(board, name, call, human, ids):
    """The use case, and its arguments with what is Alice's or unknown in their places."""
    module, _, function = name.partition(".")
    case = getattr(importlib.import_module(f"tenure.board.{module}"), function)

    def put(value):
        if value is Own:
            return next(one for one in board.read(endpoints.list_all, human) if one.name == "own")
        return ids[value.kind] if isinstance(value, Of) else value

    args, kwargs = call
    return case, [human, *map(put, args)], {key: put(value) for key, value in kwargs.items()}


def test_b26_every_use_case_of_a_human_is_in_this_table():
    """A new one must say here what it reaches."""
    assert set(use_cases()) == set(CALLS) | OWN | INNER


def test_b26_anothers_is_refused_like_what_never_was_and_nothing_changes(board, things):
    """For Charlie, and for Bob where it is not his too: one refusal, the very value, and not a row is different."""
    for human in (board.charlie, board.bob):
        board.vend(human, name="own")
    before = everything(board)
    for name, calls in CALLS.items():
        for human in [board.charlie] if name.startswith("friends.") else [board.charlie, board.bob]:
            for call, ids in itertools.product(calls, (things, UNKNOWN, *MALFORMED)):
                case, args, kwargs = called(board, name, call, human, ids)
                assert board.refused(case, *args, **kwargs) is MISSING, name
    assert everything(board) == before


def test_b26_what_has_ended_is_as_hidden_as_what_lives(board, things):
    """Alice's endpoint is revoked, her token and session are ended: to Charlie nothing is different."""
    board.vend(board.charlie, name="own")
    board.write(_ended, things)
    for name, calls in CALLS.items():
        for call in calls:
            case, args, kwargs = called(board, name, call, board.charlie, things)
            assert board.refused(case, *args, **kwargs) is MISSING, name


def _ended(tx, board, things):
    endpoints.revoke(tx, board, board.alice, things["endpoint"])
    tokens.revoke(tx, board, board.alice, things["token"])
    signing_in.end_session(tx, board, board.alice, things["session"])
    friends.decline(tx, board, board.alice, things["friendship"])


def test_b26_alice_reaches_all_of_it(board, things):
    """The same calls are no refusals of reach to her: the table above tests what it says."""
    board.vend(name="own")
    for name, calls in CALLS.items():
        human = board.bob if name == "friends.collect" else board.alice
        case, args, kwargs = called(board, name, calls[0], human, things)
        try:
            board.write(undone(case), *args, **kwargs)
        except Undone:
            continue
        except Refused as refused:
            said = refused.refusal
        assert said is not MISSING, name


def undone(case):
    """The use case, and then a rollback."""

    def tried(*args, **kwargs):
        case(*args, **kwargs)
        raise Undone

    return tried


class Undone(Exception):
    """Raised when it succeeded, so that the next call finds all as it was."""


def test_b26_what_alice_does_is_in_nobodys_view_but_hers(board, things):
    """Lists, counts, audit, agents, tokens: Charlie's and Bob's are the same before and after she does a great deal."""
    views = [
        agents.list_all, audit.list_page, endpoints.list_all, friends.list_all, humans.friend_code, schedules.list_all,
        signing_in.sessions, todos.counts, tokens.list_all,
    ]  # fmt: skip

    def view(human):
        return [board.read(case, human) for case in views], board.read(todos.list_page, human).items

    before = [view(human) for human in (board.charlie, board.bob)]
    second = board.vend(name="second", queues=["a"], targets=[things["endpoint"]])
    board.write(todos.create, board.alice, second.endpoint, NewTodo("more"))
    board.write(endpoints.edit_lease, board.alice, things["endpoint"], 600)
    board.write(endpoints.rotate, board.alice, things["endpoint"], 60)
    board.write(tokens.create, board.alice, "another")
    board.write(webhooks.create, board.alice, name="y", ref=second.endpoint.slug)
    board.write(endpoints.revoke, board.alice, second.endpoint.slug)
    assert [view(human) for human in (board.charlie, board.bob)] == before
