"""What holds for all tests."""

from tests.depth import load_profile

load_profile()
