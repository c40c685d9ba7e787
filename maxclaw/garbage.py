"""Python's garbage collector in a process that serves people."""

import gc


def freeze_start_up() -> None:
    """Take what start-up loaded out of the collector's rounds. It stays as long as the process does, and walking a
    quarter of a million objects would stop the process for a tenth of a second in the middle of somebody's answer."""
    gc.collect()
    gc.freeze()
