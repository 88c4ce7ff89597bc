"""What can stop a step. Step Functions knows these by their class names; `dynashard_cdk.prewarm_machine` names them.

PrewarmError
├── NotYetError              the table is still changing: ask again later
├── PrewarmRefusedError      it must not run, and trying again would not help
└── PrewarmInterruptedError  another run, or somebody, has taken over the table
"""


class PrewarmError(Exception):
    """Root of the tree."""


class NotYetError(PrewarmError):
    """The table is still changing; the same step succeeds later."""


class PrewarmRefusedError(PrewarmError):
    """The pre-warm must not run; the message says what to change."""


class PrewarmInterruptedError(PrewarmError):
    """Somebody else, or a later run, has taken over the table."""
