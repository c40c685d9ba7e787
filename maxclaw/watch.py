"""Watches whether the server's children still work, beside the supervisor's own loop, which must never
block."""

import http.client
import threading

from django.conf import settings
from django.db import Error, connection

from maxclaw import clock
from maxclaw.heartbeat import PROBE_AFTER_SECONDS, age, queue_probe

WEB_PAUSE_SECONDS = 3.0
WORKER_PAUSE_SECONDS = 2.0
ANSWER_TIMEOUT_SECONDS = 10.0


class WebWatch:
    """Asks `/health/live` again and again. `last_answer` is the monotonic time of the newest answer."""

    def __init__(self, host: str, port: int) -> None:
        self.host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
        self.port = port
        self.last_answer: float | None = None
        self._start()

    def _start(self) -> None:
        threading.Thread(target=self._ask_forever, name="web watch", daemon=True).start()

    def _ask_forever(self) -> None:
        pause = threading.Event()
        while True:
            if self.answers():
                self.last_answer = clock.monotonic()
                pause.wait(WEB_PAUSE_SECONDS)
            else:
                pause.wait(0.1)

    def answers(self) -> bool:
        """Whether the web process answers. Any answer counts: an error page too is a sign of life."""
        allowed = next((name.lstrip(".") for name in settings.ALLOWED_HOSTS if name != "*"), "localhost")
        client = http.client.HTTPConnection(self.host, self.port, timeout=ANSWER_TIMEOUT_SECONDS)
        try:
            client.request("GET", "/health/live", headers={"Host": allowed})
            client.getresponse().read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            client.close()
        return True


class WorkerWatch:
    """Reads the workers' heartbeat and has them probed while they are silent.

    `last_beat` is the monotonic time of their newest sign of life; `reachable` is false while the database
    does not answer, when nothing can be said of them.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.last_beat: float | None = None
        self.reachable = False
        threading.Thread(target=self._look_forever, name="worker watch", daemon=True).start()

    def _look_forever(self) -> None:
        pause = threading.Event()
        while not pause.wait(WORKER_PAUSE_SECONDS):
            try:
                seconds = age(self.name)
                if seconds is not None:
                    self.last_beat = clock.monotonic() - seconds
                    if seconds > PROBE_AFTER_SECONDS:
                        queue_probe()
                self.reachable = True
            except Error:
                self.reachable = False
            finally:
                connection.close()
