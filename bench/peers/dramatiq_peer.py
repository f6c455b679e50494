"""Dramatiq on Redis. It has no scheduler."""

import dramatiq
from adapter import URL, become, hang_in_thread, main
from dramatiq.brokers.redis import RedisBroker

dramatiq.set_broker(RedisBroker(url=URL))
hang = dramatiq.actor(hang_in_thread, actor_name="hang", max_retries=3, time_limit=3_600_000)

if __name__ == "__main__":
    main(put=hang.send, work=lambda: become("dramatiq", "dramatiq_peer", "-p", "1"))
