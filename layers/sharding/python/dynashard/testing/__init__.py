"""Test a program against a local DynamoDB engine: empty tables, faults, and resizes on demand.

    def test_a_lost_answer_does_not_create_a_second_order(dynashard_sandbox):
        orders = dynashard_sandbox.db.collection(Order)
        dynashard_sandbox.inject(lost_answer("PutItem"))
        ...

The fixtures `dynashard_sandbox` and `dynashard_db` are a plug-in of pytest, which `pip install dynashard[testing]`
registers.
"""

from dynashard.testing.faults import Fault, FaultyTransport, Late, conflict, lost_answer, lost_request, throttled
from dynashard.testing.sandbox import Sandbox

__all__ = [
    "Fault",
    "FaultyTransport",
    "Late",
    "Sandbox",
    "conflict",
    "lost_answer",
    "lost_request",
    "throttled",
]
