"""The systems of the domain on the stack as it is deployed: its queues and its stream included."""

from collections.abc import Callable

import httpx
import pytest

from tests.e2e.deployment import Deployment
from tests.e2e.systems import SYSTEMS

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: str(system.__name__))
def test_a_system_behaves_as_documented(deployment: Deployment, system: Callable[[httpx.Client], None]) -> None:
    system(deployment.tenant(f"tenant-of-{system.__name__}"))
