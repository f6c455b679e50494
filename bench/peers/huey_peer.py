"""Huey on Redis, with threads. Its schedules are no finer than a minute."""

import huey_peer as me
from adapter import URL, become, hang_in_thread, main
from huey import RedisHuey

huey = RedisHuey("bench", url=URL, results=False)


@huey.task(retries=3)
def hang():
    hang_in_thread()


if __name__ == "__main__":
    main(put=me.hang, work=lambda: become("huey_consumer", "huey_peer.huey", "-q"))
