"""The user of the benchmark as a pynamodb model, written as its documentation recommends.

Timestamps are text attributes, so that the model can read the items of the layer. This saves pynamodb the parsing.
"""

from typing import Any

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.models import Model

from bench.world import KEYS, REGION, TABLE, World


def peer_model(world: World, url: str | None = None) -> Any:
    """Return the model, bound to the engine or to another `url`."""
    endpoint = url or world.engine_url

    class PeerUser(Model):
        class Meta:
            table_name = TABLE
            region = REGION
            host = endpoint
            aws_access_key_id = KEYS[0]
            aws_secret_access_key = KEYS[1]

        PK = UnicodeAttribute(hash_key=True)
        SK = UnicodeAttribute(range_key=True)
        tenant_id = UnicodeAttribute()
        id = UnicodeAttribute()
        email = UnicodeAttribute()
        display_name = UnicodeAttribute()
        manager_id = UnicodeAttribute()
        department = UnicodeAttribute()
        status = UnicodeAttribute()
        title = UnicodeAttribute()
        phone = UnicodeAttribute()
        logins = NumberAttribute()
        created_at = UnicodeAttribute()
        updated_at = UnicodeAttribute()
        Type = UnicodeAttribute()
        Rev = UnicodeAttribute()
        GSI1PK = UnicodeAttribute()
        GSI1SK = UnicodeAttribute()
        GSI2PK = UnicodeAttribute()
        GSI2SK = UnicodeAttribute()
        GSI3PK = UnicodeAttribute()
        GSI3SK = UnicodeAttribute()

    return PeerUser


def peer_item(model: Any, wire: dict[str, Any], *, partition: str) -> Any:
    """Return a stored user as an item of the model, under another partition key."""
    values = {name: int(value["N"]) if "N" in value else value["S"] for name, value in wire.items()}
    return model(**{**values, "PK": partition})
