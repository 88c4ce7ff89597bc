"""The pre-warm: steps of its state machine, and its beginning."""

from dynashard_serving.prewarm.handler import begin, step

__all__ = ["begin", "step"]
