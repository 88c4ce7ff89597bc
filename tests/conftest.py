"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# No example has to be quick: a deadline would make a busy machine fail a test.
settings.register_profile("dynashard", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dynashard")
