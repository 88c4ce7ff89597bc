"""Exports that DynamoDB makes of the table's backup, into S3: they touch none of the table's capacity."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

from tools.failure import CommandError, CommandInterruptedError

S3: Final = "s3"
_EVERY_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket, and what the names of things in it begin with."""

    bucket: str
    prefix: str

    @classmethod
    def of(cls, url: str) -> "Place":
        """From `s3://bucket/prefix`.

        Raises:
            CommandError: it is no such thing.
        """
        parts = urlsplit(url)
        if parts.scheme != S3 or not parts.netloc or parts.query or parts.fragment:
            raise CommandError(f"{url}: write a place in S3 like s3://bucket/prefix")
        return cls(parts.netloc, parts.path.strip("/"))

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Has DynamoDB export a table.

    Attributes:
        client: botocore's DynamoDB client.
        sleep: waits some seconds.
        token: makes the id that keeps one request from starting two exports.
    """

    client: Any
    sleep: Callable[[float], None] = time.sleep
    token: Callable[[], str] = field(default=lambda: uuid4().hex)

    def run(self, table: str, place: Place, told: Callable[[str], None]) -> Mapping[str, Any]:
        """Start an export and follow it to its end.

        Args:
            table: the table's name; point-in-time recovery is on.
            place: where the export goes.
            told: is told what happens.

        Returns:
            Where it is, and how many items and bytes of all entities it holds.

        Raises:
            CommandError: it could not be started, or has failed.
            CommandInterruptedError: Ctrl-C; DynamoDB goes on by itself.

        Cost: no capacity; DynamoDB bills by the GB of the table. One DescribeExport every 20 seconds.
        """
        export = self._started(table, place)
        arn = export["ExportArn"]
        told(f"started {arn}")
        try:
            while export["ExportStatus"] == "IN_PROGRESS":
                self.sleep(_EVERY_SECONDS)
                export = self._call("describe_export", ExportArn=arn)["ExportDescription"]
        except KeyboardInterrupt:
            raise CommandInterruptedError(f"interrupted; DynamoDB goes on with {arn}") from None
        if export["ExportStatus"] != "COMPLETED":
            reason = f"{export.get('FailureCode', '')} {export.get('FailureMessage', '')}".strip()
            raise CommandError(f"the export {arn} has failed: {reason}")
        folder = "/".join(part for part in (place.prefix, "AWSDynamoDB", arn.rpartition("/")[2]) if part)
        return {
            "export": arn,
            "place": str(Place(place.bucket, folder)),
            "items": export.get("ItemCount"),
            "bytes": export.get("BilledSizeBytes"),
        }

    def _started(self, table: str, place: Place) -> Any:
        described = self._call("describe_table", TableName=table)["Table"]
        where = {"S3Prefix": place.prefix} if place.prefix else {}
        answer = self._call(
            "export_table_to_point_in_time",
            TableArn=described["TableArn"],
            S3Bucket=place.bucket,
            ExportFormat="DYNAMODB_JSON",
            ClientToken=self.token(),
            **where,
        )
        return answer["ExportDescription"]

    def _call(self, operation: str, **request: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - only deployed backends need it

        try:
            return getattr(self.client, operation)(**request)
        except (BotoCoreError, ClientError) as error:
            raise CommandError(f"{operation.replace('_', ' ')}: {error}") from error
