"""Reads the items of one entity from the files of a DynamoDB export."""

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final
from zlib import error as ZlibError  # noqa: N812 - an error like any other

import orjson

from dynashard import Entity
from dynashard.errors import UndecodableItemError
from dynashard.repository.conditions import is_live
from dynashard.schema import MOVED_TO
from dynashard.transport import Wire
from dynashard_tools.entities import family
from dynashard_tools.environments import aws_errors
from dynashard_tools.export.choice import Choice
from dynashard_tools.export.reading import BATCH
from dynashard_tools.export.snapshot import Place
from dynashard_tools.failure import CommandError

_SUMMARY: Final = "manifest-summary.json"
_DATA: Final = ".json.gz"

Opened = Callable[[], BinaryIO]


class Export:
    """The files of a DynamoDB export. Raises `CommandError` if there are no data files."""

    def __init__(self, files: dict[str, Opened]) -> None:
        self._files = files
        self.data = sorted(name for name in files if name.endswith(_DATA))
        if not self.data:
            raise CommandError(f"there are no files ...{_DATA}: name the folder that holds `data/` and {_SUMMARY}")

    @classmethod
    def at(cls, source: str, client: Callable[[], Any]) -> "Export":
        """Open the export at a path, or at `s3://bucket/prefix/AWSDynamoDB/<id>` with boto3's client of S3.

        Raises:
            CommandError: there is no export.
        """
        if source.startswith("s3://"):
            return cls(_in_s3(client(), Place.of(source)))
        folder = Path(source)
        if not folder.is_dir():
            raise CommandError(f"{source} is not a folder: name the one with `data/` and {_SUMMARY}")
        return cls({str(path): _opener(path) for path in folder.rglob("*") if path.is_file()})

    def taken(self) -> float | None:
        """The time of the export, in epoch seconds; None if its summary is missing or does not say."""
        for name, opened in self._files.items():
            if name.rpartition("/")[2] == _SUMMARY:
                with opened() as stream:
                    time = json.load(stream).get("exportTime")
                return None if time is None else datetime.fromisoformat(time).timestamp()
        return None

    def items(self) -> Iterator[Wire]:
        """All stored items, relocation markers included. Raises `CommandError` if a file is damaged."""
        for name in self.data:
            try:
                with self._files[name]() as stream, gzip.open(stream) as lines:
                    for line in lines:
                        item: Wire = orjson.loads(line)["Item"]
                        yield item
            except (OSError, EOFError, ZlibError, KeyError, TypeError, orjson.JSONDecodeError) as error:
                raise CommandError(f"{name} is damaged, or not DynamoDB JSON ({error}): fetch it again") from error


def converted(
    export: Export, choice: Choice, undecodable: Callable[[UndecodableItemError], None]
) -> Iterator[Sequence[Entity]]:
    """Return the chosen items of an export, as readers would have seen them at its time.

    Relocation markers and items that had expired are left out. An item that was moving is returned once, because it is
    live in one place at any time. Items that do not fit their declaration are reported to `undecodable`.
    """
    taken = export.taken()
    entity = choice.entity
    known = family(entity)
    batch: list[Entity] = []
    for stored in export.items():
        if MOVED_TO in stored or known.owner(stored) is not entity:
            continue
        if taken is not None and not is_live(stored, taken):
            continue
        try:
            item = entity.decode(stored)
        except UndecodableItemError as error:
            undecodable(error)
            continue
        if choice.includes(item):
            batch.append(item)
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _opener(path: Path) -> Opened:
    return lambda: path.open("rb")


def _in_s3(client: Any, place: Place) -> dict[str, Opened]:
    def opener(key: str) -> Opened:
        def opened() -> BinaryIO:
            with aws_errors(f"s3://{place.bucket}/{key} cannot be read"):
                body: BinaryIO = client.get_object(Bucket=place.bucket, Key=key)["Body"]
            return body

        return opened

    prefix = f"{place.prefix}/" if place.prefix else ""
    with aws_errors(f"{place} cannot be listed"):
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=prefix)
        keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
    return {key: opener(key) for key in keys}
