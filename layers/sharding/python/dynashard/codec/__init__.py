"""Python values to DynamoDB's JSON and back, exactly, and the size of an item.

The wire is DynamoDB's own JSON as it goes over HTTP: `{"S": "text"}`, `{"N": "1.5"}`, binary as base64 text.
What cannot be stored exactly is refused with an `InvalidValueError` that names the value's place in the item.
"""

from dynashard.codec.decode import decode_item, decode_value
from dynashard.codec.encode import Attribute, encode_value, register_encoder
from dynashard.codec.numeric import plain_text
from dynashard.codec.size import item_size, require_fits, value_size

__all__ = [
    "Attribute",
    "decode_item",
    "decode_value",
    "encode_value",
    "item_size",
    "plain_text",
    "register_encoder",
    "require_fits",
    "value_size",
]
