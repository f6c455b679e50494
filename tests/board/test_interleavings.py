"""Random interleavings of two workers, the reaper, an operator and restarts, over real databases.

Each story is one todo's: drawn steps, then whatever is needed to bring it to its end, then the laws over what the
database holds. Its number is its seed, and is named when a law breaks.
"""

import json
import os
import random
import threading

import pytest
from board_hall import open_hall
from board_worker import Hands, key

from tenure.board import claims, reaper, tables, todos
from tenure.board.refused import Refused
from tenure.board.shapes import Beat, Completion, Failing, Handback, Next
from tenure.rules.refusal import Refusal

SHORT, LONG = 40, 10_000


def conflict_of(call):
    """The reason of the conflict that the call met, if it met one; nothing else may be refused here."""
    try:
        call()
    except Refused as refused:
        if refused.refusal.code != "conflict":
            raise
        return refused.refusal.details.get("reason")
    return None


class Story:
    """One todo, and what two workers, a reaper and an operator remember of it."""

    def __init__(self, board, worker, todo_id, chance):
        self.board, self.worker, self.todo_id, self.chance = board, worker, todo_id, chance
        self.held = {"a": [], "b": []}
        self.accepted, self.late = [], {}
        self.told = []

    def step(self):
        who = self.chance.choice("ab")
        step = self.chance.choices(STEPS, WEIGHTS)[0]
        self.told.append((who, step.__name__, conflict_of(lambda: step(self, who))))

    def claim_next(self, who):
        for granted in self.board.write(claims.claim_next, self.worker, Next(worker_label=who)).granted:
            assert granted.todo.summary.id == self.todo_id, "another story's todo"
            self.held[who].append(granted)

    def claim(self, who):
        claimed = self.board.write(claims.claim, self.worker, self.todo_id, None, who)
        self.held[who] += claimed.granted

    def heartbeat(self, who):
        if self.held[who]:
            beat = Beat(*key(self.chance.choice(self.held[who])), self.chance.choice([None, 30]))
            self.board.write(claims.heartbeat, self.worker, [beat])

    def complete(self, who):
        if self.held[who]:
            granted = self.chance.choice(self.held[who])
            result = {"by": who, "draw": self.chance.random()}
            self.completed(
                granted, result, self.board.write(claims.complete, self.worker, [Completion(*key(granted), result)])[0]
            )

    def completed(self, granted, result, answer):
        if isinstance(answer, Refusal):
            self.late[granted.lease.claim_id] = {"verb": "complete", "result": result}
        elif not answer.already:
            self.accepted.append(result)

    def fail(self, who):
        if self.held[who]:
            granted = self.chance.choice(self.held[who])
            (answer,) = self.board.write(claims.fail, self.worker, [Failing(*key(granted), "no luck")])
            kept = self.late.get(granted.lease.claim_id)
            if isinstance(answer, Refusal) and (kept is None or kept["verb"] == "fail"):
                self.late[granted.lease.claim_id] = {"verb": "fail", "reason": "no luck"}

    def release(self, who):
        if self.held[who]:
            self.board.write(claims.release, self.worker, [Handback(*key(self.chance.choice(self.held[who])))])

    def worker_restarts(self, who):
        self.held[who].clear()

    def reap(self, who):
        self.board.write(reaper.reap)

    def time_passes(self, who):
        self.board.clock.turn(seconds=self.chance.choice([20, 40, 301, 1000]))

    def operator(self, who):
        case = self.chance.choice([todos.board_claim, todos.board_release, todos.board_fail, todos.retry])
        self.board.write(case, self.board.alice, self.todo_id)

    def operator_ends_it(self, who):
        if self.chance.random() < 0.5:
            self.board.write(todos.cancel, self.board.alice, self.todo_id)
        else:
            result = {"by": "operator"}
            self.board.write(todos.board_complete, self.board.alice, self.todo_id, result)
            self.accepted.append(result)

    def server_restarts(self, who):
        if self.chance.random() < 0.1:
            self.board.database.engine.dispose()

    def to_the_end(self):
        """What time, the reaper and a willing worker bring about: no todo is lost."""
        for _ in range(40):
            todo = self.board.read(todos.get, self.board.alice, self.todo_id)
            if todo.summary.ended is not None:
                return todo
            self.board.clock.turn(minutes=20)
            self.board.write(reaper.reap)
            for granted in self.board.write(claims.claim_next, self.worker, Next()).granted:
                self.completed(
                    granted,
                    "at last",
                    self.board.write(claims.complete, self.worker, [Completion(*key(granted), "at last")])[0],
                )
        raise AssertionError(f"it is lost: {todo}")

    def check(self):
        """No double completion, no lost todo, and all that was refused can be read."""
        todo = self.to_the_end()
        done = todo.summary.state == "done"
        assert len(self.accepted) == done, (self.accepted, todo.summary.state)
        assert not done or todo.result == self.accepted[0]
        assert [one.attempt for one in todo.attempts] == list(range(1, todo.summary.attempts + 1))
        assert all(one.ended is not None for one in todo.attempts)
        assert sum(one.end in ("completed", "completed_by_operator") for one in todo.attempts) == done
        assert {one.id: one.late for one in todo.attempts if one.late} == self.late
        assert todo.summary.lapses == sum(one.end == "lapsed" for one in todo.attempts)


STEPS = (
    Story.claim_next, Story.claim, Story.heartbeat, Story.complete, Story.fail, Story.release, Story.worker_restarts,
    Story.reap, Story.time_passes, Story.operator, Story.operator_ends_it, Story.server_restarts,
)  # fmt: skip
WEIGHTS = (20, 8, 12, 12, 5, 6, 3, 14, 14, 8, 2, 2)


def tell(board, seeds):
    """Tell these stories one after the other; a broken law names its seed and its steps."""
    hands = Hands(board, board.vend(name="stories"))
    worker = hands.worker
    for seed in seeds:
        chance = random.Random(seed)
        story = Story(board, worker, hands.put(f"story {seed}", failures_cap=9, lapses_cap=9), chance)
        try:
            for _ in range(chance.randint(6, 16)):
                story.step()
            story.check()
        except AssertionError as broken:
            steps = "\n  ".join(map(str, story.told))
            raise AssertionError(f"seed {seed}: {broken}\n  {steps}") from broken


def test_b01_random_interleavings_keep_the_laws(board):
    """A share of the ten thousand, another one each day."""
    first = random.randrange(10**6)
    tell(board, range(first, first + SHORT))


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_b01_ten_thousand_random_interleavings_keep_the_laws(board):
    """All of them, on each database. TENURE_TEST_INTERLEAVINGS sets another number."""
    tell(board, range(int(os.environ.get("TENURE_TEST_INTERLEAVINGS", LONG))))


class Storm:
    """Three workers, two reapers and an operator truly at once, on two servers if there can be two."""

    def __init__(self, board, other, rounds, count):
        self.board, self.rounds = board, rounds
        hands = Hands(board, board.vend(name="storm"))
        self.worker = hands.worker
        self.made = [hands.put(f"storm {n}", failures_cap=99, lapses_cap=99) for n in range(count)]
        self.accepted, self.refused, self.errors = [], [], []
        self.jobs = [
            (self.work, board, "a"), (self.work, other, "b"), (self.work, other, "c"), (self.reap, board),
            (self.reap, other), (self.operate, other),
        ]  # fmt: skip

    def work(self, on, label):
        chance, held = random.Random(label), []
        for _ in range(self.rounds * 3):
            ask = Next(max=chance.randint(1, 4), worker_label=label)
            held += on.write(claims.claim_next, self.worker, ask).granted
            chance.shuffle(held)
            on.write(claims.heartbeat, self.worker, [Beat(*key(one)) for one in held[:4]])
            some, held = held[:2], held[2:]
            items = [Completion(*key(one), {"by": label, "n": chance.random()}) for one in some]
            for item, answer in zip(items, on.write(claims.complete, self.worker, items), strict=True):
                told = self.refused if isinstance(answer, Refusal) else self.accepted
                told.append((item.todo_id, item.result))
            if held:
                on.write(claims.release, self.worker, [Handback(*key(held.pop()))])

    def reap(self, on):
        for _ in range(self.rounds * 2):
            self.board.clock.turn(seconds=130)
            on.write(reaper.reap)

    def operate(self, on):
        chance = random.Random("operator")
        for _ in range(self.rounds * 2):
            case = chance.choice([todos.board_claim, todos.board_release, todos.board_fail, todos.retry])
            todo_id = chance.choice(self.made)
            conflict_of(lambda case=case, todo_id=todo_id: on.write(case, on.alice, todo_id))

    def rage(self):
        threads = [threading.Thread(target=self.guarded, args=job) for job in self.jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self.errors

    def guarded(self, doing, *args):
        try:
            doing(*args)
        except BaseException as error:
            self.errors.append(error)
            raise

    def check(self):
        rows = self.board.rows(tables.todos)
        done = {row.id: json.loads(row.result) for row in rows if row.state == "done"}
        assert len(self.accepted) == len(done), "one todo was completed twice, or was not"
        assert dict(self.accepted) == done
        late = [json.loads(row.late)["result"] for row in self.board.rows(tables.claims) if row.late]
        assert all(result in late for _, result in self.refused)
        open_claims = [row.todo for row in self.board.rows(tables.claims) if row.ended is None]
        assert sorted(open_claims) == sorted(row.id for row in rows if row.state == "claimed")
        assert not [row for row in rows if row.state == "failed" and (row.retry_at is None) == (row.ended is None)]


def test_b01_a_storm_of_threads_keeps_the_laws(board, board_url):
    """Each todo done once, nothing lost, every refused result kept; no deadlock and no lock error reaches a worker."""
    other = open_hall(board_url, clock=board.clock) if board.database.postgres else board
    storm = Storm(board, other, rounds=12, count=12)
    try:
        storm.rage()
    finally:
        if other is not board:
            other.database.shut()
    storm.check()
