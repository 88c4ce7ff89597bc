"""What the monitoring stack watches."""

from dataclasses import dataclass

from aws_cdk import aws_logs as logs

from dynashard_cdk.api import ApiStack
from dynashard_cdk.changes import ChangesStack
from dynashard_cdk.commands import CommandsStack
from dynashard_cdk.data import DataStack
from dynashard_cdk.reshard import ReshardStack
from dynashard_cdk.writer import WriterStack


@dataclass(frozen=True)
class Parts:
    """The stacks that are watched."""

    data: DataStack
    api: ApiStack
    commands: CommandsStack
    changes: ChangesStack
    writer: WriterStack
    reshard: ReshardStack

    @property
    def logs(self) -> dict[str, logs.ILogGroup]:
        """Their logs, by the names that saved queries use."""
        return {
            "access": self.api.access_log,
            "api": self.api.function.log,
            "commands": self.commands.function.log,
            "writer": self.writer.worker.log,
            "changes": self.changes.follower.log,
            "advance": self.reshard.advance.log,
            "work": self.reshard.work.log,
            "watch": self.reshard.watch.log,
        }
