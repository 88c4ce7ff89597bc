"""Synthesised environments, once each: the synthesiser takes seconds to start and milliseconds after."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from dynashard_checks.schedules.wire import port_of_engine_in_memory
from tests.infra import reshard_world
from tests.infra.prewarm_world import World, definition_in, world
from tests.infra.templates import ADJUSTED, GUARDED, MONITORING, PREWARMS, PRIME_TIME, Templates, context, synthesise
from tests.shared import made_once

Synthesised = Callable[[str, str | None], Templates]


@pytest.fixture(scope="session")
def synthesised(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """Templates of an environment, optionally with a way of pre-warming."""

    @cache
    def templates(env: str, prewarm: str | None = None) -> Templates:
        changes = {"prewarm": PREWARMS[prewarm]} if prewarm else {}
        name = f"templates-{env}-{prewarm}"
        folder = made_once(tmp_path_factory, name, lambda empty: synthesise(context(env, **changes), empty))
        return Templates(folder, env)

    return templates


@pytest.fixture(scope="session")
def dev(synthesised: Synthesised) -> Templates:
    return synthesised("dev", "native")


@pytest.fixture(scope="session")
def prod(synthesised: Synthesised) -> Templates:
    return synthesised("prod", "provisioned")


@pytest.fixture(scope="session")
def scheduled(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Templates of dev with provisioned capacity that follows a schedule."""
    folder = made_once(
        tmp_path_factory, "templates-dev-scheduled", lambda empty: synthesise(context("dev", table=PRIME_TIME), empty)
    )
    return Templates(folder, "dev")


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Templates of dev with all alarms: with scheduled capacity and all settings of monitoring."""
    given = context("dev", table=PRIME_TIME, monitoring=MONITORING)
    folder = made_once(tmp_path_factory, "templates-dev-watched", lambda empty: synthesise(given, empty))
    return Templates(folder, "dev")


@pytest.fixture(scope="session")
def adjusted(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Templates of dev with settings that are not as shipped. A synthesis takes a second, so they share one."""
    folder = made_once(
        tmp_path_factory, "templates-dev-adjusted", lambda empty: synthesise(context("dev", **ADJUSTED), empty)
    )
    return Templates(folder, "dev")


@pytest.fixture(scope="module")
def definition(prod: Templates) -> dict[str, Any]:
    """The state machine of the provisioned pre-warm."""
    return definition_in(prod["Prewarm"])


@pytest.fixture
def here(definition: dict[str, Any]) -> Iterator[World]:
    """A table, a schedule and a memory for the provisioned pre-warm."""
    with world(definition) as fresh:
        yield fresh


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """An engine for resizes."""
    with port_of_engine_in_memory() as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def parcels(dev: Templates, endpoint: str) -> Iterator[reshard_world.World]:
    """A world with some parcels in 2 shards."""
    with reshard_world.world(dev, endpoint) as made:
        reshard_world.fill(made)
        yield made


@pytest.fixture(scope="session")
def synthesised_pool(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Templates of prod with a user pool."""
    given = context("prod", auth={"user_pool": {}})
    folder = made_once(tmp_path_factory, "templates-prod-pool", lambda empty: synthesise(given, empty))
    return Templates(folder, "prod")


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Templates of prod with what is off as shipped: a canary, a key of the customer, a budget and others."""
    folder = made_once(
        tmp_path_factory, "templates-prod-guarded", lambda empty: synthesise(context("prod", **GUARDED), empty)
    )
    return Templates(folder, "prod")
