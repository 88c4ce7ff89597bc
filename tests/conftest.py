"""What holds for all tests."""

from hypothesis import settings

# No example has to be quick: a deadline would make a busy machine fail a test.
settings.register_profile("dynashard", deadline=None, print_blob=True)
settings.load_profile("dynashard")
