import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.maxclaw.running import processes_of, wait_until


@pytest.fixture(scope="module")
def data_dir():
    """A data folder, shared by a module's tests because making a cluster takes a second; reachable for
    everybody."""
    folder = Path(tempfile.mkdtemp(dir=Path(os.environ["MAXCLAW_DATA_DIR"]).parent))
    folder.chmod(0o755)
    yield folder
    wait_until(lambda: not processes_of(folder), what=f"the end of everything in {folder}")
    shutil.rmtree(folder)
