"""Which execution of the state machine carries a resize: its name, its input, and how it is started once."""

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

Client = Any  # boto3 makes its clients' methods at run time

_READABLE: Final = 36
"""An execution's name has 80 characters: the record's key, shortened; a digest of the key; a stamp; a part."""
_DIGEST: Final = 8


@dataclass(frozen=True, slots=True)
class Executions:
    """Executions of the state machine."""

    client: Client
    machine: str

    def start(self, key: str, stamp: str) -> bool:
        """Start the execution of the resize that a record was given by one write of it.

        Args:
            key: the record's key.
            stamp: identifies this write of the record. The same write starts one execution, however often it is asked
                for.

        Returns:
            Whether this call started it.
        """
        name = name_of(key, stamp)
        try:
            self.client.start_execution(
                stateMachineArn=self.machine, name=name, input=json.dumps({"key": key, "run": name, "part": 0})
            )
        except self.client.exceptions.ExecutionAlreadyExists:
            return False
        return True

    def running(self) -> list[str]:
        """Names of those that run now. Cost: 1 round trip for every 1000."""
        names: list[str] = []
        request: dict[str, Any] = {"stateMachineArn": self.machine, "statusFilter": "RUNNING", "maxResults": 1000}
        while True:
            answer: dict[str, Any] = self.client.list_executions(**request)
            names += [execution["name"] for execution in answer["executions"]]
            if not answer.get("nextToken"):
                return names
            request["nextToken"] = answer["nextToken"]


def beginning_of(key: str) -> str:
    """What the names of all executions about a record begin with, and no others'."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", key).strip("-")[:_READABLE]
    return f"{readable}-{sha256(key.encode()).hexdigest()[:_DIGEST]}-"


def name_of(key: str, stamp: str) -> str:
    """The name of the execution for one write of a record; of letters, digits and hyphens, at most 70."""
    return beginning_of(key) + re.sub(r"[^0-9]", "", stamp)[:20]


def following(run: str, part: int) -> str:
    """The name of the execution that goes on where one has grown too long."""
    return f"{run}-{part}"
