"""Python values to DynamoDB's JSON and back, exactly, and the size of an item.

The wire is DynamoDB's own JSON as it goes over HTTP: `{"S": "text"}`, `{"N": "1.5"}`, binary as base64 text.
A value that cannot be stored exactly is refused with an `InvalidValueError` that names its place in the item.

    written                     stored                          read
    str, enum                   S, the enum's value             str
    int, float, Decimal         N, exact or refused             int if whole, else Decimal without trailing zeros
    bool, None                  BOOL, NULL                      bool, None
    bytes-like                  B                               bytes
    list, tuple                 L                               list
    dict                        M, keys are text                dict, sorted by name
    set, frozenset              SS, NS, BS, sorted              set
    datetime                    S, "2021-02-24T19:28:41.000000Z"; with a time zone only, in UTC
    date, time                  S, ISO 8601; a time without a zone, with microseconds
    timedelta                   N, seconds, exact to the microsecond
    UUID                        S, 36 characters
    registered types            as what their encoder returns

Sorted sets make equal requests of equal items. Dates, times and UUIDs have a fixed width, so their texts sort as their
values do; an entity's fields restore their types. Subclasses are stored as what they derive from.
"""

from dynashard.codec.decode import decode_value
from dynashard.codec.encode import encode_value, register_encoder
from dynashard.codec.numeric import plain_text
from dynashard.codec.size import fits, item_size, require_fits

__all__ = [
    "decode_value",
    "encode_value",
    "fits",
    "item_size",
    "plain_text",
    "register_encoder",
    "require_fits",
]
