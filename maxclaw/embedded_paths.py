"""Where the embedded database and this installation's secret live. Names files; starts nothing."""

import os
import secrets
from pathlib import Path
from urllib.parse import quote

DATABASE_NAME = "maxclaw"
DATABASE_USER = "postgres"


def cluster_dir(data_dir: Path) -> Path:
    """The folder of the embedded PostgreSQL cluster."""
    return data_dir / "postgres"


def socket_dir(data_dir: Path) -> Path:
    """The folder of its Unix socket. Socket paths are limited to about 100 bytes, so a deep data folder gets
    a short name in the system's temporary folder, derived from its path."""
    folder = data_dir / "run"
    if len(str(folder)) <= 80:
        return folder
    import hashlib
    import tempfile

    return Path(tempfile.gettempdir()) / f"maxclaw-{hashlib.sha256(str(data_dir).encode()).hexdigest()[:12]}"


def database_url(data_dir: Path) -> str:
    """The DATABASE_URL of the embedded database, whether it runs or not."""
    host = quote(str(socket_dir(data_dir)), safe="/")
    return f"postgresql://{DATABASE_USER}@/{DATABASE_NAME}?host={host}"


def secret_key(data_dir: Path) -> str:
    """This installation's key, made once and kept in the data folder, readable by its owner alone."""
    path = data_dir / "secret_key"
    try:
        return path.read_text().strip()
    except OSError:
        pass
    data_dir.mkdir(parents=True, exist_ok=True)
    key = secrets.token_urlsafe(64)
    # Two processes starting at once agree: whoever links first wins, the other reads.
    draft = path.with_name(f".secret_key.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(key)
    try:
        os.link(draft, path)
    except FileExistsError:
        key = path.read_text().strip()
    finally:
        draft.unlink()
    return key
