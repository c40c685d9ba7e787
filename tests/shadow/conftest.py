"""What tests of shadows have."""

from tests.agent.conftest import emulator, emulator_process, small_budget

__all__ = ["emulator", "emulator_process", "small_budget"]
