"""The systems of the domain on the local stack: its queues and its stream included."""

from collections.abc import Callable

import httpx
import pytest

from tests.e2e.local_process import LocalProcess
from tests.e2e.systems import SYSTEMS

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: str(system.__name__))
def test_a_system_behaves_as_documented(local_stack: LocalProcess, system: Callable[[httpx.Client], None]) -> None:
    system(local_stack.client(f"tenant-of-{system.__name__}"))
