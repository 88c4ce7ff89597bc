"""An engine within the process: just enough of DynamoDB, in memory, to execute what the sharding layer sends.

What it does not know it refuses. `tests/engine/lab/test_simulate_engine.py` compares it with the local engine.
Libraries do not fit: moto 5.2 takes 5 ms of CPU for an operation, and its transactions and units are wrong.
"""
