"""The bounds of one request over REST, direct invocation or a queue. docs/limits.md lists them.

Every bound is checked before the work that it bounds begins.
"""

from typing import Any, Final

from dynashard.reads.limits import MAX_PARTITIONS

MAX_BODY_BYTES: Final = 400 * 1024
"""A body of JSON, uncompressed. The most that each attachment may hold is added to it."""
MAX_VALUES: Final = 200_000
"""Values of one JSON document: objects, lists, strings, numbers, `true`, `false` and `null`, at every level."""
MAX_DEPTH: Final = 32
"""Levels of nesting that DynamoDB stores."""
MAX_EVENT_DEPTH: Final = 40
"""Levels of nesting in a direct invocation or a message: an item, and the levels of the request around it."""
MAX_NAME_LENGTH: Final = 1024
"""Characters of a name in a JSON object. Each error below it repeats the name."""
MAX_DIGITS: Final = 400
"""Digits of a number in JSON. DynamoDB keeps 38."""
MAX_PATH_BYTES: Final = 8 * 1024
MAX_QUERY_BYTES: Final = 16 * 1024
MAX_PARAMETERS: Final = 120
"""Query parameters of a request, repeated ones included: 100 logical partitions, and 20 options of the listing."""
MAX_HEADER_BYTES: Final = 16 * 1024
"""Names and values of all headers. The gateway accepts 10 KB."""
MAX_TAGS: Final = 50
"""Entity tags of one `If-Match` or `If-None-Match`."""
MAX_LINK_BYTES: Final = 8 * 1024
"""A `Link` header. A longer one is left out, because no request could carry its URL."""
MAX_ANSWER_BYTES: Final = (6 * 1024 - 64) * 1024
"""Lambda answers at most 6 MB; the rest is for headers and the envelope of a result."""
WRITE_ATTEMPTS: Final = 5
"""How often a read and a conditional write are tried while other writers interfere."""
MAX_BATCH: Final = 1000
"""Keys, puts or deletes of one batch."""
MAX_MIXED: Final = 100
"""Requests of a batch over REST, or of `batch` in a direct invocation."""
MAX_MIXED_BYTES: Final = 2 * 1024 * 1024
"""The body of a batch over REST."""
MAX_PATCH_OPERATIONS: Final = 100
"""Operations of one JSON Patch."""
MAX_COUNTED: Final = 100_000
"""Items that one count over REST reads at most."""
DEFAULT_COUNTED: Final = 10_000
"""The same, unless the request says otherwise."""
MAX_CHOICES: Final = MAX_PARTITIONS
"""Logical partitions of one request, and values of one field that chooses them."""
MAX_NAMES: Final = 100
"""Names in a list of names, such as `fields` or `include`."""
MAX_QUERIES: Final = 300
"""Queries that one request may send, unless the settings say otherwise."""
READING_SHARE: Final = 0.5
"""The part of a request's time after which it reads no further page."""
LONGEST_SECONDS: Final = 30.0
"""How long a request may take if its invocation does not say."""
_MARGIN_SECONDS: Final = 1.0
_MARGIN_SHARE: Final = 0.1


def seconds_left(context: Any) -> float:
    """Return how long an invocation can still take, in seconds, by its Lambda context."""
    ask = getattr(context, "get_remaining_time_in_millis", None)
    return LONGEST_SECONDS if ask is None else int(ask()) / 1000


def time_to_answer(left: float) -> float:
    """Return how long an invocation may work, in seconds, so that it still answers: all but a second, or a tenth.

    Args:
        left: how long it can still take; see `seconds_left`.
    """
    return left - min(_MARGIN_SECONDS, left * _MARGIN_SHARE)
