"""The stacks of this backend. Leave out what you do not need, and add your own."""

from pathlib import Path

from aws_cdk import App

from dynashard_cdk.api import ApiStack
from dynashard_cdk.changes import ChangesStack
from dynashard_cdk.commands import CommandsStack
from dynashard_cdk.data import DataStack
from dynashard_cdk.deployment import Deployment
from dynashard_cdk.monitored import Parts
from dynashard_cdk.monitoring import MonitoringStack
from dynashard_cdk.prewarm import PrewarmStack
from dynashard_cdk.reshard import ReshardStack
from dynashard_cdk.writer import WriterStack


def add_backend(app: App, root: Path) -> None:
    """Add every stack of the environment that the app's context asks for; raises as `Deployment.of`."""
    deployment = Deployment.of(app, root)
    settings, name = deployment.settings, deployment.name

    data = DataStack(app, name("Data"), **deployment.placed)
    shared = {**deployment.code, "data": data}
    api = ApiStack(app, name("Api"), **shared)
    commands = CommandsStack(app, name("Commands"), cursor_secret=api.cursor_secret, **shared)
    reshard = ReshardStack(app, name("Reshard"), **shared)
    changes = ChangesStack(app, name("Changes"), **shared)
    writer = WriterStack(app, name("Writer"), **shared)
    writer.feed(api.function)

    topic = None
    if not settings.local:  # the local stack has no CloudWatch
        parts = Parts(data, api, commands, changes, writer, reshard)
        topic = MonitoringStack(app, name("Monitoring"), parts=parts, **deployment.placed).topic
    if settings.prewarm is not None:
        PrewarmStack(app, name("Prewarm"), prewarm=settings.prewarm, topic=topic, **shared)
