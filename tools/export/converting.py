"""From what DynamoDB has exported to the items of one entity."""

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
from dynashard.schema import EXPIRES_AT, MOVED_TO, TYPE
from dynashard.transport import Wire
from tools.export.choice import Choice
from tools.export.reading import BATCH
from tools.export.snapshot import Place
from tools.failure import CommandError

_SUMMARY: Final = "manifest-summary.json"
_DATA: Final = ".json.gz"

Opened = Callable[[], BinaryIO]


class Export:
    """The files of an export: its data, and when it was taken."""

    def __init__(self, files: dict[str, Opened]) -> None:
        self._files = files
        self.data = sorted(name for name in files if name.endswith(_DATA))
        if not self.data:
            raise CommandError(f"there are no files ...{_DATA}: give the folder that holds `data/` and {_SUMMARY}")

    @classmethod
    def at(cls, source: str, client: Callable[[], Any]) -> "Export":
        """The export in a folder, or in S3.

        Args:
            source: a path, or `s3://bucket/prefix/AWSDynamoDB/<id>`.
            client: makes botocore's S3 client.

        Raises:
            CommandError: there is none.
        """
        if source.startswith("s3://"):
            return cls(_in_s3(client(), Place.of(source)))
        folder = Path(source)
        if not folder.is_dir():
            raise CommandError(f"{source} is no folder: give that of the export, which holds `data/` and {_SUMMARY}")
        return cls({str(path): _opener(path) for path in folder.rglob("*") if path.is_file()})

    def taken(self) -> float | None:
        """The moment that it shows, in epoch seconds; None if nothing tells."""
        for name, opened in self._files.items():
            if name.rpartition("/")[2] == _SUMMARY:
                with opened() as stream:
                    told = json.load(stream).get("exportTime")
                return None if told is None else datetime.fromisoformat(told).timestamp()
        return None

    def items(self) -> Iterator[Wire]:
        """All stored items, marks included.

        Raises:
            CommandError: a file is damaged.
        """
        for name in self.data:
            try:
                with self._files[name]() as stream, gzip.open(stream) as lines:
                    for line in lines:
                        item: Wire = orjson.loads(line)["Item"]
                        yield item
            except (OSError, EOFError, ZlibError, KeyError, TypeError, orjson.JSONDecodeError) as error:
                raise CommandError(f"{name} is damaged, or no DynamoDB JSON ({error}): fetch it again") from error


def converted(
    export: Export, choice: Choice, undecodable: Callable[[UndecodableItemError], None]
) -> Iterator[Sequence[Entity]]:
    """The chosen items of an export, as readers would have seen them at its moment.

    So marks are left out, and what was past its time. An export shows one moment, and a moving item is live in one
    place at any: it comes once.

    Args:
        export: the files.
        choice: which items.
        undecodable: told of each item that does not fit its declaration; it is left out.
    """
    taken = export.taken()
    entity = choice.entity
    batch: list[Entity] = []
    for stored in export.items():
        if MOVED_TO in stored or stored.get(TYPE) != {"S": entity.name}:
            continue
        if taken is not None and EXPIRES_AT in stored and float(stored[EXPIRES_AT]["N"]) <= taken:
            continue
        try:
            item = entity.decode(stored)
        except UndecodableItemError as error:
            undecodable(error)
            continue
        if choice.takes(item):
            batch.append(item)
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _opener(path: Path) -> Opened:
    return lambda: path.open("rb")


def _in_s3(client: Any, place: Place) -> dict[str, Opened]:
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - folders need none of it

    def opener(key: str) -> Opened:
        def opened() -> BinaryIO:
            try:
                body: BinaryIO = client.get_object(Bucket=place.bucket, Key=key)["Body"]
            except (BotoCoreError, ClientError) as error:
                raise CommandError(f"s3://{place.bucket}/{key} cannot be read: {error}") from error
            return body

        return opened

    prefix = f"{place.prefix}/" if place.prefix else ""
    try:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=prefix)
        keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
    except (BotoCoreError, ClientError) as error:
        raise CommandError(f"{place} cannot be listed: {error}") from error
    return {key: opener(key) for key in keys}
