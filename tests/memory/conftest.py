"""What tests of memory have."""

from tests.agent.conftest import emulator, emulator_process

__all__ = ["emulator", "emulator_process"]
