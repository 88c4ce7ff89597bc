"""Shard counts that change by themselves: throttles are counted, a policy decides, and a resize request is stored.

`connection` hands throttles to the policy, and imports the rest only after the first one.
"""
