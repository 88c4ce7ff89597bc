"""Random schedules of a counter whose parts become more, and mutants of its rules.

python -m dynashard_checks.schedules.counters --schedules 20000
python -m dynashard_checks.schedules.counters --seed 42
"""
