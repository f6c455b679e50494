"""The store on Redis 6.2 and later or Valkey 7.2 and later: one server, Sentinel or Cluster, through redis-py."""

from tenure.stores.redis.store import RedisStore

__all__ = ["RedisStore"]
