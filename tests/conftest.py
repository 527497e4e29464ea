"""Settings that all tests share."""

from hypothesis import settings

# the same examples each time, however slow the machine
settings.register_profile("caviar", deadline=None, derandomize=True)
settings.load_profile("caviar")
