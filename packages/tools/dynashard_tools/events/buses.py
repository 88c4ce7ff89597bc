"""The bus of the local stack, or of a deployed environment, as what publishes to it."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from dynashard_local.bus.calls import BusCalls
from dynashard_local.bus.store import DATABASE, EventStore
from dynashard_local.errors import LocalStackError
from dynashard_local.functions.specs import CHANGES, function_named
from dynashard_local.settings import Settings
from dynashard_local.template import committed
from dynashard_serving.events.publishing import Publish, Publisher, to_bus
from dynashard_tools.environments import environment_named
from dynashard_tools.failure import CommandError


@contextmanager
def bus_of(environment: str | None) -> Iterator[Publish]:
    """Yield what publishes to a bus.

    Raises:
        CommandError: there is none.

    Cost: deployed, what `environment_named` costs, and 1 DescribeStacks.
    """
    if environment is not None:
        known = environment_named(environment)
        bus, source = (known.output("Changes", name) for name in ("EventBus", "EventSource"))
        yield to_bus(bus, source, partial(known.client, "events"))
        return
    try:
        templates = committed()
        name = function_named(templates, CHANGES)
        [function] = [each for each in templates.of_type("AWS::Lambda::Function") if each.name == name]
        variables = templates.resolve(function.stack, function.properties["Environment"]["Variables"])
        with closing(EventStore.open(Settings.from_env(os.environ).data_dir / DATABASE)) as store:
            calls = BusCalls(store)
            yield Publisher(
                lambda entries: calls.answer("PutEvents", {"Entries": entries}),
                variables["EVENT_BUS"],
                variables["EVENT_SOURCE"],
            )
    except (LocalStackError, sqlite3.DatabaseError) as error:
        raise CommandError(str(error)) from error
