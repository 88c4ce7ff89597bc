"""Unique fields of items that exist already.

duplicates          items that have the same unique values, found without memory for all of them
building            reserves the values of stored items
command             `dynashard unique`
"""
