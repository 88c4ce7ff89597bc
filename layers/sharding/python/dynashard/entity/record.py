"""What every stored item is, before anything is declared about it: a pydantic model with a revision."""

from typing import Final

from pydantic import BaseModel, ConfigDict, PrivateAttr

UNREVISED: Final = ""
"""The revision of a stored item that has none yet, because it was written before it was adopted."""


class Record(BaseModel):
    """A checked set of fields that knows at which revision it is stored."""

    model_config = ConfigDict(
        extra="forbid",
        validate_assignment=True,
        allow_inf_nan=False,
        ser_json_bytes="base64",
        val_json_bytes="base64",
    )

    _revision: str | None = PrivateAttr(default=None)

    @property
    def revision(self) -> str | None:
        """Id of the write that made the stored item what it is; None for an item that was never stored.

        Empty for one that was stored before it was adopted.
        """
        return self._revision
