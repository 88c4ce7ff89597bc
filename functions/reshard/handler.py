"""Resizes: the state machine's steps, the dispatcher, the operator's requests and the watch."""

from dynashard_serving.reshard.handler import advance, dispatch, operate, stop, watch, work

__all__ = ["advance", "dispatch", "operate", "stop", "watch", "work"]
