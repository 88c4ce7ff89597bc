"""The settings of the function."""

from dataclasses import dataclass
from typing import Annotated

from dynashard_serving.settings import TableSettings, Variable


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(TableSettings):
    """Settings of the function, with the URL of the queue for changes that cannot be handled."""

    dead_letter_queue: Annotated[str, Variable("DEAD_LETTER_QUEUE")]
