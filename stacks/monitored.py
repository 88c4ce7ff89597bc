"""What the monitoring stack watches."""

from dataclasses import dataclass

from aws_cdk import aws_logs as logs

from stacks.api import ApiStack
from stacks.changes import ChangesStack
from stacks.commands import CommandsStack
from stacks.data import DataStack
from stacks.reshard import ReshardStack
from stacks.writer import WriterStack


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
