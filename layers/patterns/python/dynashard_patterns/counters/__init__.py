"""Counters that stay exact: one number that many writers change at once, within a floor and a ceiling.

    class Stock(Counter, name="shop.v1.Stock", key=Key(partition="{tenant_id}:{id}"), floor=0):
        tenant_id: str
        id: str

    stock = CounterStore.on(db, Stock)
    stock.add({"tenant_id": "abc", "id": "4711"}, 100)
    stock.take({"tenant_id": "abc", "id": "4711"}, 2, Create(order))     # both, or neither
    stock.value({"tenant_id": "abc", "id": "4711"})                      # 98, at one moment

A counter is spread over parts, whose number grows like a shard count. Each part holds a share of what may still be
taken or added, so most changes touch one part, and the bounds hold while others write.

Sources: the escrow method of O'Neil, "The Escrow Transactional Method" (1986), and bounded counters of Balegas et al.,
"Extending Eventually Consistent Cloud Databases for Enforcing Numeric Invariants" (2015).
"""

from dynashard_patterns.counters.declaration import Counter, bounds_of
from dynashard_patterns.counters.store import CounterStore

__all__ = [
    "Counter",
    "CounterStore",
    "bounds_of",
]
