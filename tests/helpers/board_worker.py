"""A worker of an endpoint, for tests: each call is one transaction, as a door makes it."""

from tenure.board import claims, todos
from tenure.board.shapes import Beat, Completion, Failing, Handback, NewTodo, Next


class Hands:
    """What a worker with this credential does, by name or without one."""

    def __init__(self, board, vended, label=None):
        self.board, self.vended, self.label = board, vended, label

    @property
    def worker(self):
        """Whoever uses the credential: read anew, as each call does."""
        return self.board.worker(self.vended)

    def do(self, case, *args, **kwargs):
        return self.board.write(case, self.worker, *args, **kwargs)

    def put(self, title="a todo", **new):
        """A todo on this endpoint, made by its human; its id."""
        board = self.board
        made = board.write(todos.create, self.human, self.vended.endpoint, NewTodo(title, **new))
        return made.todo.summary.id

    @property
    def human(self):
        people = self.board.people.values()
        return next(human for human in people if human.id == self.vended.endpoint.human)

    def next(self, ttl=None, *, max=1, queues=(), request_id=None):  # noqa: A002 - the verb's argument
        """claim_next."""
        return self.do(claims.claim_next, Next(tuple(queues), max, ttl, self.label, request_id))

    def take(self, ttl=None, **kwargs):
        """The one todo that claim_next grants."""
        (granted,) = self.next(ttl, **kwargs).granted
        return granted

    def claim(self, todo_id, ttl=None, request_id=None):
        """Claim by id; the one grant."""
        (granted,) = self.do(claims.claim, todo_id, ttl, self.label, request_id).granted
        return granted

    def beat(self, granted, ttl=None):
        (answer,) = self.do(claims.heartbeat, [Beat(*key(granted), ttl)])
        return answer

    def check(self, granted):
        return self.board.read(claims.check_claim, self.worker, *key(granted))

    def complete(self, granted, result=None):
        (answer,) = self.do(claims.complete, [Completion(*key(granted), result)])
        return answer

    def fail(self, granted, reason=""):
        (answer,) = self.do(claims.fail, [Failing(*key(granted), reason)])
        return answer

    def release(self, granted, reason=""):
        (answer,) = self.do(claims.release, [Handback(*key(granted), reason)])
        return answer

    def see(self, todo_id):
        """The todo as its human sees it."""
        return self.board.read(todos.get, self.human, todo_id)


def key(granted):
    """The id of the todo and the lease token of a grant."""
    return granted.todo.summary.id, granted.lease.token.reveal()
