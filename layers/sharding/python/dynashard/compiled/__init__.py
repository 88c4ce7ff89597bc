"""Readers and writers of stored items that are generated for each entity: what the codec does, in less CPU time.

Each returns None for what it cannot do, and the codec does it.
"""
