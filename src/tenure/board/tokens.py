"""A human's tokens, for REST and the command line: shown once, kept as hashes, listed by hint, revoked."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from tenure.board import audit, ids, tables
from tenure.board.access import Human, storable
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused, granted
from tenure.board.secrets import Secret, digest, draw
from tenure.rules import endpoints as rules
from tenure.rules.refusal import MISSING


class Token(NamedTuple):
    """What can be told of a token; `hint` is its end."""

    id: str
    name: str
    hint: str
    created: int
    seen: int | None
    expires: int | None


class Minted(NamedTuple):
    """A token and its secret, on its one way out."""

    token: Token
    secret: Secret


def create(tx: Tx, board: Board, human: Human, name: str, expires: int | None = None) -> Minted:
    """A new token, valid until revoked or until then."""
    label, now = granted(rules.label(name, "name")), tx.now()
    secret = draw("human")
    clear = secret.reveal()
    token = Token(ids.new("tk", now), label, clear[-4:], now, None, granted(rules.expiry(expires, now, "token")))
    tx.execute(sa.insert(tables.tokens).values(**token._asdict(), human=human.id, hash=digest(clear)))
    audit.write(tx, human.id, human, "add", ("token", token.id), f"token {label} (…{token.hint}) was made", now)
    return Minted(token, secret)


def list_all(tx: Tx, board: Board, human: Human) -> list[Token]:
    """The human's valid tokens, newest first."""
    table, now = tables.tokens, tx.now()
    statement = sa.select(*(table.c[name] for name in Token._fields)).where(
        table.c.human == human.id, table.c.revoked.is_(None), sa.or_(table.c.expires.is_(None), table.c.expires > now)
    )
    return [Token._make(row) for row in tx.all(statement.order_by(table.c.id.desc()))]


def revoke(tx: Tx, board: Board, human: Human, token_id: str) -> None:
    """End a token at once. Raises Refused(MISSING) for one that is not the human's, or is revoked already."""
    table, now = tables.tokens, tx.now()
    mine = sa.and_(table.c.id == token_id, table.c.human == human.id, table.c.revoked.is_(None))
    end = sa.update(table).where(mine).values(revoked=now).returning(table.c.name, table.c.hint)
    row = tx.one(end) if storable(token_id) else None
    if row is None:
        raise Refused(MISSING)
    told = f"token {row.name} (…{row.hint}) was revoked"
    audit.write(tx, human.id, human, "revoke", ("token", token_id), told, now)
