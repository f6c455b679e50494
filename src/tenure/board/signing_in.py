"""Signing in: passwords, one-time links, and the sessions of the web page.

Passwords are argon2id. A hash takes a fifth of a second, so it is made on a thread of its own and outside of every
transaction; an unknown name costs the same, against a hash that no password has.
"""

from __future__ import annotations

import asyncio
import secrets
from functools import lru_cache
from typing import Final, NamedTuple

import sqlalchemy as sa
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from tenure.board import audit, buckets, humans, ids, tables
from tenure.board.access import Human, human_by_session, storable
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.board.secrets import Secret, digest, draw, well_spelled
from tenure.rules.bounds import NAME_CHARS, PASSWORD_CHARS
from tenure.rules.instant import HOUR, MINUTE
from tenure.rules.refusal import MISSING, Refusal, invalid

LINK_MS: Final = 10 * MINUTE
_HASHER: Final = PasswordHasher()
# One answer for an unknown name, a wrong password, and a human who has none.
NOT_SIGNED_IN: Final = Refusal("unauthenticated", "That name and password do not go together. Try again.")
LINK_OVER: Final = Refusal(
    "unauthenticated",
    "This sign-in link was used, is more than 10 minutes old, or never was. "
    "Make another where the server runs: tenure human link NAME",
)


class Session(NamedTuple):
    """What can be told of a session; `agent` is the browser it was begun with."""

    id: str
    agent: str | None
    created: int
    seen: int
    expires: int


class SignedIn(NamedTuple):
    """A human and the cookie of their new session."""

    human: Human
    cookie: Secret


# --- passwords --------------------------------------------------------------------------------------------


async def by_password(board: Board, name: str, password: str, *, address: str, agent: str = "") -> SignedIn:
    """Sign in by name and password; spends the buckets of the account and of the address. Raises Refused."""
    name = name.strip()  # as `label` stored it; a phone's keyboard likes to write a blank behind a name
    if not name.isprintable() or len(name) > NAME_CHARS:
        name = ""  # nobody's: it takes the same way as any that is not known
    await buckets.spend(board, "sign_in_address", address)
    await buckets.spend(board, "sign_in_account", digest(name))
    stored = await board.database.read(_password_of, name)
    if not await asyncio.to_thread(_fits, stored, password):
        raise Refused(NOT_SIGNED_IN)
    again = await asyncio.to_thread(hashed_password, password) if _HASHER.check_needs_rehash(stored) else None
    return await board.database.write(_enter, board, name, stored, again, agent)


async def set_password(board: Board, human: Human, password: str) -> None:
    """Give the human this password, and end their sessions but the one that asks. Raises Refused."""
    hashed = await asyncio.to_thread(hashed_password, password)
    await board.database.write(put_password, board, human, hashed)


def check_password(password: str) -> None:
    """Raises Refused for one that is too short to be good, or too long to hash."""
    least, most = PASSWORD_CHARS
    if not least <= len(password) <= most:
        raise Refused(invalid("password", f"must have from {least} to {most} characters; a sentence is good."))


def hashed_password(password: str) -> str:
    """The password as it is stored; takes a fifth of a second. Raises Refused."""
    check_password(password)
    return _HASHER.hash(_bytes(password))


def put_password(tx: Tx, board: Board, human: Human, hashed: str) -> None:
    """Store what `hashed_password` made, and end the human's sessions but the one that asks."""
    now = tx.now()
    tx.execute(sa.update(tables.humans).where(tables.humans.c.id == human.id).values(password=hashed))
    others = sa.and_(tables.sessions.c.human == human.id, tables.sessions.c.id != human.via_id)
    tx.execute(sa.delete(tables.sessions).where(others))
    actor = None if human.via == "link" else human
    audit.write(tx, human.id, actor, "edit", ("human", human.id), "the password was changed", now)
    tx.notify("board", human.id)  # the open pages of ended sessions end with them


def _password_of(tx: Tx, name: str) -> str:
    row = tx.one(sa.select(tables.humans.c.password).where(tables.humans.c.name == name))
    return str(row.password) if row and row.password else _nobodys()


@lru_cache(maxsize=1)
def _nobodys() -> str:
    return _HASHER.hash(secrets.token_hex(32))


def _fits(stored: str, password: str) -> bool:
    try:
        return _HASHER.verify(stored, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False


def _bytes(password: str) -> bytes:
    """Whatever was typed, as bytes; no more of it than a password can have, and one sign that tells it has more."""
    return password[: PASSWORD_CHARS[1] + 1].encode("utf-8", "surrogatepass")


def _enter(tx: Tx, board: Board, name: str, stored: str, again: str | None, agent: str) -> SignedIn:
    """Begin a session, if the password is still the one that was proved."""
    table = tables.humans
    row = tx.one(sa.select(table.c.id).where(table.c.name == name, table.c.password == stored))
    if row is None:
        raise Refused(NOT_SIGNED_IN)
    if again is not None:
        tx.execute(sa.update(table).where(table.c.id == row.id).values(password=again))
    return _begin(tx, board, row.id, agent, "by password")


# --- one-time links ---------------------------------------------------------------------------------------


def link_for(tx: Tx, board: Board, name: str) -> Secret:
    """A link's secret for the human of this name: one use, 10 minutes. For the server's own machine alone."""
    person, now = humans.named(tx, board, name), tx.now()
    secret = draw("link")
    tx.execute(
        sa.insert(tables.links).values(
            hash=digest(secret.reveal()), human=person.id, created=now, expires=now + LINK_MS
        )
    )
    audit.write(tx, person.id, None, "link", ("human", person.id), "a sign-in link was made", now)
    return secret


def by_link(tx: Tx, board: Board, secret: str, agent: str = "") -> SignedIn:
    """Sign in by a link, which is used up. Raises Refused."""
    if not well_spelled(secret, "link"):
        raise Refused(LINK_OVER)
    table, now = tables.links, tx.now()
    fresh = sa.and_(table.c.hash == digest(secret), table.c.used.is_(None), table.c.expires > now)
    row = tx.one(sa.update(table).where(fresh).values(used=now).returning(table.c.human))
    if row is None:
        raise Refused(LINK_OVER)
    return _begin(tx, board, row.human, agent, "by a link")


# --- sessions ---------------------------------------------------------------------------------------------


def _begin(tx: Tx, board: Board, human_id: str, agent: str, how: str) -> SignedIn:
    now, cookie = tx.now(), draw("session")
    session = Session(ids.new("se", now), _printable(agent), now, now, now + board.settings.session_hours * HOUR)
    clear = cookie.reveal()
    tx.execute(sa.insert(tables.sessions).values(**session._asdict(), human=human_id, hash=digest(clear)))
    human = human_by_session(tx, board, clear)
    audit.write(tx, human_id, human, "sign_in", ("session", session.id), f"signed in {how}", now)
    return SignedIn(human, cookie)


def sessions(tx: Tx, board: Board, human: Human) -> list[Session]:
    """The human's open sessions, newest first."""
    table = tables.sessions
    mine = sa.and_(table.c.human == human.id, table.c.expires > tx.now())
    statement = sa.select(*(table.c[name] for name in Session._fields)).where(mine).order_by(table.c.id.desc())
    return [Session._make(row) for row in tx.all(statement)]


def end_session(tx: Tx, board: Board, human: Human, session_id: str) -> None:
    """End one of the human's sessions; one's own: sign out. Raises Refused(MISSING)."""
    table = tables.sessions
    mine = sa.and_(table.c.id == session_id, table.c.human == human.id)
    if not storable(session_id) or tx.one(sa.delete(table).where(mine).returning(table.c.id)) is None:
        raise Refused(MISSING)
    audit.write(tx, human.id, human, "sign_out", ("session", session_id), "a session was ended", tx.now())
    tx.notify("board", human.id)  # its open pages end with it


def prune(tx: Tx, board: Board) -> int:
    """Delete links and sessions that are over; how many. For the reaper."""
    now, gone = tx.now(), 0
    for table in (tables.links, tables.sessions):
        gone += tx.execute(sa.delete(table).where(table.c.expires <= now)).rowcount
    return gone


def _printable(text: str) -> str:
    return "".join(sign for sign in text[:200] if sign.isprintable())
