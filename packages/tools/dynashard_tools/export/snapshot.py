"""Exports that DynamoDB makes of the table's backup into S3, without using the table's capacity."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

from dynashard_tools.environments import aws_errors
from dynashard_tools.failure import CommandError, on_interrupt

S3: Final = "s3"
_EVERY_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket, and the prefix of keys in it."""

    bucket: str
    prefix: str

    @classmethod
    def of(cls, url: str) -> "Place":
        """Parse `s3://bucket/prefix`. Raises `CommandError` if the text has another form."""
        parts = urlsplit(url)
        if parts.scheme != S3 or not parts.netloc or parts.query or parts.fragment:
            raise CommandError(f"{url}: write a place in S3 like s3://bucket/prefix")
        return cls(parts.netloc, parts.path.strip("/"))

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Lets DynamoDB export a table; `token` returns the idempotency token of a request."""

    client: Any
    sleep: Callable[[float], None] = time.sleep
    token: Callable[[], str] = field(default=lambda: uuid4().hex)

    def run(self, table: str, place: Place, log: Callable[[str], None]) -> Mapping[str, Any]:
        """Export a table with point-in-time recovery, wait for the end, and return what the export has.

        Raises:
            CommandError: it could not be started, or has failed.
            CommandInterruptedError: Ctrl-C; DynamoDB continues the export.

        Cost: no capacity; DynamoDB bills by the GB of the table. One DescribeExport every 20 seconds.
        """
        export = self._started(table, place)
        arn = export["ExportArn"]
        log(f"started {arn}")
        with on_interrupt(lambda: f"DynamoDB continues {arn}"):
            while export["ExportStatus"] == "IN_PROGRESS":
                self.sleep(_EVERY_SECONDS)
                export = self._call("describe_export", ExportArn=arn)["ExportDescription"]
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
        with aws_errors(operation.replace("_", " ")):
            return getattr(self.client, operation)(**request)
