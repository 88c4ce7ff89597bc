"""Scratch resources: each has the prefix and a tag, and is removed at the end, also after a failure or Ctrl-C."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

PREFIX: Final = "dynashard-verify-"
TAG: Final = "dynashard-verify-aws"
"""The key of the tag; its value is the run's id."""
INDEX: Final = "GSI1"
ON_DEMAND: Final = "PAY_PER_REQUEST"
_EVERY_SECONDS: Final = 2.0
_STALE_SECONDS: Final = 10.0
_READY_SECONDS: Final = 3_600.0
_REMOVED_SECONDS: Final = 1_800.0
"""A table that is changing cannot be deleted; 100,000 units may take it long."""
_GONE: Final = frozenset(
    {"ResourceNotFoundException", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "NotFoundException"}
)
_BUSY: Final = frozenset({"ResourceInUseException", "LimitExceededException", "ThrottlingException"})


@dataclass
class Scratch:
    """Creates resources, and removes all that it has created.

    Attributes:
        client: makes clients of AWS's services.
        run: the id of this run, which is part of every name.
        now: the time in seconds.
        sleep: waits.
    """

    client: Callable[[str], Any]
    run: str
    now: Callable[[], float]
    sleep: Callable[[float], None]
    _undo: dict[str, Callable[[], object]] = field(default_factory=dict)

    def defer(self, what: str, remove: Callable[[], object]) -> None:
        """Note how to remove something, before it is created. `what` names it for people."""
        self._undo[what] = remove

    def named(self, name: str) -> str:
        """Return the whole name of a resource whose name ends so."""
        return f"{PREFIX}{self.run}-{name}"

    def table(self, name: str, *, indexed: bool = False, **options: Any) -> str:
        """Create a table with the keys PK and SK, wait until it is active, and return its name.

        Args:
            name: the end of its name.
            indexed: whether it has the index GSI1 on GSI1PK and GSI1SK, with all attributes.
            options: of CreateTable; on demand if they name no billing mode. `index` has options of the index.
        """
        full, index = self.named(name), options.pop("index", {})
        attributes = ["PK", "SK", *(["GSI1PK", "GSI1SK"] if indexed else [])]
        request = {
            "TableName": full,
            "BillingMode": ON_DEMAND,
            "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in attributes],
            "KeySchema": key_schema("PK", "SK"),
            "Tags": [{"Key": TAG, "Value": self.run}],
            **options,
        }
        if indexed:
            projection = {"ProjectionType": "ALL"}
            keys = key_schema("GSI1PK", "GSI1SK")
            request["GlobalSecondaryIndexes"] = [
                {"IndexName": INDEX, "KeySchema": keys, "Projection": projection, **index}
            ]
        dynamodb = self.client("dynamodb")
        self.defer(f"table {full}", lambda: self._remove_table(full))
        dynamodb.create_table(**request)
        self.wait_until_active(full)
        return full

    def wait_until_active(self, table: str) -> Mapping[str, Any]:
        """Wait until a table and its indexes are active, and return its description; raise `TimeoutError` if not."""
        end, dynamodb = self.now() + _READY_SECONDS, self.client("dynamodb")
        while self.now() < end:
            try:
                found: Mapping[str, Any] = dynamodb.describe_table(TableName=table)["Table"]
            except ClientError as error:
                if error.response["Error"]["Code"] not in _GONE:
                    raise
            else:
                indexes = found.get("GlobalSecondaryIndexes", [])
                if found["TableStatus"] == "ACTIVE" and all(each["IndexStatus"] == "ACTIVE" for each in indexes):
                    return found
            self.sleep(_EVERY_SECONDS)
        raise TimeoutError(f"{table} is not active after {_READY_SECONDS:.0f} seconds")

    def wait_until_changed(self, table: str) -> Mapping[str, Any]:
        """Wait until a change of a table is over; an answer right after the change may still be from before it."""
        self.sleep(_STALE_SECONDS)
        return self.wait_until_active(table)

    def queue(self, name: str, **attributes: str) -> str:
        """Create a queue, and return its URL."""
        full, sqs = self.named(name), self.client("sqs")

        def remove() -> None:
            sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=full)["QueueUrl"])

        self.defer(f"queue {full}", remove)
        return str(sqs.create_queue(QueueName=full, Attributes=attributes, tags={TAG: self.run})["QueueUrl"])

    def log_group(self, name: str) -> str:
        """Create a log group, and return its name."""
        full, logs = self.named(name), self.client("logs")
        self.defer(f"log group {full}", lambda: logs.delete_log_group(logGroupName=full))
        logs.create_log_group(logGroupName=full, tags={TAG: self.run})
        return full

    def remove_all(self) -> list[str]:
        """Remove everything, the last created first, and return what could not be removed, each with the reason."""
        left = []
        for what, remove in reversed(list(self._undo.items())):
            if reason := _refusal(remove):
                left.append(f"{what}: {reason}")
            else:
                del self._undo[what]
        return list(reversed(left))

    @property
    def present(self) -> list[str]:
        """What was created and is not removed yet."""
        return list(self._undo)

    def remove_leftovers(self) -> tuple[list[str], list[str]]:
        """Remove what earlier runs have left, found by prefix and tag.

        Returns:
            what was removed, and what could not be removed, each with the reason.
        """
        for what, remove in self._leftovers().items():
            self.defer(what, remove)
        found = self.present
        left = self.remove_all()
        return [each for each in found if not any(line.startswith(f"{each}: ") for line in left)], left

    def _leftovers(self) -> dict[str, Callable[[], object]]:
        dynamodb, sqs, logs = self.client("dynamodb"), self.client("sqs"), self.client("logs")
        found: dict[str, Callable[[], object]] = {}
        for page in dynamodb.get_paginator("list_tables").paginate():
            for name in page["TableNames"]:
                if name.startswith(PREFIX) and self._is_tagged_table(name):
                    found[f"table {name}"] = partial(self._remove_table, name)
        for page in sqs.get_paginator("list_queues").paginate(QueueNamePrefix=PREFIX):
            for url in page.get("QueueUrls", []):
                if TAG in sqs.list_queue_tags(QueueUrl=url).get("Tags", {}):
                    found[f"queue {url}"] = partial(sqs.delete_queue, QueueUrl=url)
        for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=PREFIX):
            for group in page["logGroups"]:
                # An environment called `verify` has names with this prefix, too.
                if TAG in logs.list_tags_for_resource(resourceArn=group["arn"].removesuffix(":*"))["tags"]:
                    name = group["logGroupName"]
                    found[f"log group {name}"] = partial(logs.delete_log_group, logGroupName=name)
        return found

    def _is_tagged_table(self, table: str) -> bool:
        dynamodb = self.client("dynamodb")
        arn = dynamodb.describe_table(TableName=table)["Table"]["TableArn"]
        return any(tag["Key"] == TAG for tag in dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"])

    def _remove_table(self, name: str) -> None:
        """Delete a table; one that is changing is deleted as soon as it has changed."""
        dynamodb, end = self.client("dynamodb"), self.now() + _REMOVED_SECONDS
        while True:
            try:
                dynamodb.delete_table(TableName=name)
            except ClientError as error:
                if error.response["Error"]["Code"] not in _BUSY or self.now() > end:
                    raise
                self.sleep(_EVERY_SECONDS)
            else:
                return


def key_schema(partition: str, sort: str) -> Sequence[Mapping[str, str]]:
    """Return the key schema of a table or an index."""
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


def _refusal(remove: Callable[[], object]) -> str:
    """Remove something; return why that is not possible, or nothing if it is gone."""
    try:
        remove()
    except ClientError as error:
        return "" if error.response["Error"]["Code"] in _GONE else str(error)
    except (BotoCoreError, OSError) as error:
        return str(error)
    return ""
