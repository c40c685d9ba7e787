"""`manage.py serve`: everything MaxClaw consists of, started, watched and ended by one process.

All children get a signal from the kernel when this process dies, so that nothing is left behind however it
ends.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import sleep
from types import FrameType

from django.conf import settings

from maxclaw import clock
from maxclaw.configuration import ConfigurationError
from maxclaw.embedded import AlreadyRunning, Cluster, EmbeddedDatabaseError
from maxclaw.heartbeat import STALE_SECONDS, WORKER_NAME_VARIABLE, worker_name
from maxclaw.preparation import (
    Login,
    PreparationError,
    collect_static_files,
    model_line,
    needs_emulator,
    prepare_database,
)
from maxclaw.processes import SUPERVISOR_VARIABLE, end, spawn
from maxclaw.serve_lock import AlreadyServing, ServeLock
from maxclaw.watch import WebWatch, WorkerWatch

WEB_SILENT_SECONDS = 60.0
FIRST_ANSWER_SECONDS = 90.0
GIVE_UP_AFTER_FAILURES = 3  # of a web process that has never answered
SETTLED_SECONDS = 60.0  # a child that lived this long starts its back-off anew
BACK_OFF_MAX_SECONDS = 30.0
LOOP_SECONDS = 0.2
# What the web server takes for open requests, beside what agent.runner.SHUTDOWN_SECONDS takes for open turns.
WEB_REQUESTS_SECONDS = 5
GRACE_SECONDS = {"web": WEB_REQUESTS_SECONDS + 5.0, "worker": 3.0, "emulator": 1.0}


class Stopped(Exception):
    """Somebody asked the server to stop while it was starting."""


@dataclass
class Plan:
    """What to serve. `host` and `port` are the web server's."""

    host: str
    port: int
    web: bool = True
    worker: bool = True
    database: bool = True
    reload: bool = False

    @property
    def address(self) -> str:
        """The address to open in a browser; empty without a web server."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - shown, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}" if self.web else ""

    @property
    def kind(self) -> str:
        if self.web and self.worker:
            return "serve"
        return f"serve-web-{self.port}" if self.web else "serve-worker"


@dataclass
class Child:
    """One program that has to run as long as the server does."""

    name: str
    arguments: list[str]
    environment: Mapping[str, str]
    silent: bool = False  # leaves out what it writes to standard output; errors are shown
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    failures: int = 0
    start_again_at: float = field(default=float("-inf"))

    def start(self) -> None:
        self.started_at = clock.monotonic()
        self.process = spawn(
            self.arguments,
            environment=self.environment,
            folder=settings.BASE_DIR,
            stdout=subprocess.DEVNULL if self.silent else None,
        )

    def failed(self) -> float:
        """Count one failure; returns the seconds to wait before the next start."""
        lived = clock.monotonic() - self.started_at
        self.failures = 1 if lived > SETTLED_SECONDS else self.failures + 1
        pause = min(2.0 ** (self.failures - 1) - 0.5, BACK_OFF_MAX_SECONDS)
        self.start_again_at = clock.monotonic() + pause
        self.process = None
        return pause


class Supervisor:
    """Starts the parts of a Plan in order, starts again what dies or hangs, and ends them in order."""

    def __init__(self, plan: Plan, say: Callable[[str], None]) -> None:
        self.plan = plan
        self.say = say
        self.cluster: Cluster | None = None
        self.children: list[Child] = []
        self.web_watch: WebWatch | None = None
        self.worker_watch: WorkerWatch | None = None
        self.stopping = False
        self.starting = True
        self.exit_code = 0

    def run(self) -> int:
        """Serve until asked to stop. Returns the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup asks
                signal.signal(number, self._on_signal)
        lock = ServeLock(settings.DATA_DIR, self.plan.kind)
        try:
            lock.take(self.plan.address)
            if self.plan.web:
                demand_free_port(self.plan.host, self.plan.port)
            self._start()
            self._watch()
        except Stopped:
            pass
        except (AlreadyServing, ConfigurationError, PreparationError, EmbeddedDatabaseError) as error:
            self.say(f"maxclaw: {error}")
            self.exit_code = 1
        finally:
            self.starting = False
            self._end()
            lock.release()
        return self.exit_code

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        again = self.stopping
        self.stopping = True
        if self.starting:
            self.starting = False
            raise Stopped
        if again:  # asked twice: no more waiting
            for child in self.children:
                if child.process is not None:
                    child.process.kill()

    def _start(self) -> None:
        if settings.DATABASE_EMBEDDED:
            self._start_database()
        login = prepare_database()
        if self.plan.web and not settings.DEBUG:
            collect_static_files()
        environment = self._environment()
        if needs_emulator():
            port = free_port()
            environment["MAXCLAW_EMULATOR_URL"] = f"http://127.0.0.1:{port}"
            self._add("emulator", emulator_arguments(port), environment, silent=True)
        if self.plan.web:
            self._add("web", web_arguments(self.plan), {**environment, "MAXCLAW_ROLE": "web"})
            self.web_watch = WebWatch(self.plan.host, self.plan.port)
        if self.plan.worker:
            name = worker_name(os.getpid())
            worker_environment = {**environment, "MAXCLAW_ROLE": "worker", WORKER_NAME_VARIABLE: name}
            self._add("worker", [sys.executable, "-m", "django", "qcluster", "--skip-checks"], worker_environment)
            self.worker_watch = WorkerWatch(name)
        self._wait_for_first_answer()
        self._introduce(login)
        self.starting = False

    def _start_database(self) -> None:
        cluster = Cluster.of(settings.DATA_DIR)
        if not (self.plan.database and self.plan.kind == "serve"):
            if not cluster.answers():
                raise PreparationError("The embedded database does not run: start `serve`, or set DATABASE_URL.")
            return
        self.cluster = cluster
        try:
            cluster.start(wait_seconds=1)
        except AlreadyRunning:
            self.say("maxclaw: waiting for another command to end with the embedded database")
            cluster.start()

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "maxclaw.settings",
            "MAXCLAW_DATA_DIR": str(settings.DATA_DIR),
            SUPERVISOR_VARIABLE: str(os.getpid()),
        }

    def _add(self, name: str, arguments: list[str], environment: Mapping[str, str], silent: bool = False) -> None:
        child = Child(name, arguments, environment, silent)
        child.start()
        self.children.append(child)

    def _wait_for_first_answer(self) -> None:
        deadline = clock.monotonic() + FIRST_ANSWER_SECONDS
        while self.web_watch is not None and self.web_watch.last_answer is None:
            self._look_after_children()
            web = next(child for child in self.children if child.name == "web")
            if web.failures >= GIVE_UP_AFTER_FAILURES or clock.monotonic() > deadline:
                raise PreparationError("The web server does not start; the lines above say why.")
            sleep(LOOP_SECONDS)

    def _introduce(self, login: Login) -> None:
        lines = [("address", self.plan.address)] if self.plan.web else [("role", "background worker")]
        reset = f"python manage.py changepassword {login.username}"
        if login.password:
            # A password of the operator's own stays out of what may be a service's log.
            shown = "the password in MAXCLAW_ADMIN_PASSWORD" if settings.ADMIN_PASSWORD else login.password
            once = "" if settings.ADMIN_PASSWORD else "shown this once; "
            lines.append(("login", f"{login.username}  {shown}  ({once}new: {reset})"))
        elif self.plan.web and login.username:
            lines.append(("login", f"{login.username}  (forgotten? {reset})"))
        elif self.plan.web:
            lines.append(("login", "no administrator: python manage.py createsuperuser"))
        lines.append(("model", model_line()))
        if settings.DATABASE_EMBEDDED:
            lines.append(("data", f"{settings.DATA_DIR}  (embedded PostgreSQL)"))
        lines.append(("stop", "Ctrl-C"))
        self.say("MaxClaw is running.\n" + "\n".join(f"  {name:<9}{value}" for name, value in lines))

    def _watch(self) -> None:
        while not self.stopping:
            self._look_after_database()
            self._look_after_children()
            sleep(LOOP_SECONDS)

    def _look_after_database(self) -> None:
        if self.cluster is not None and self.cluster.process is not None:
            code = self.cluster.process.poll()
            if code is not None:
                self.say(f"maxclaw: the database {how(code)}; starting it again")
                self.cluster.start()

    def _look_after_children(self) -> None:
        for child in self.children:
            if child.process is None:
                if clock.monotonic() >= child.start_again_at:
                    child.start()
                continue
            code = child.process.poll()
            reason = how(code) if code is not None else self._hangs(child)
            if reason:
                end(child.process, signal.SIGTERM, 2.0)
                pause = child.failed()
                self.say(f"maxclaw: {child.name} {reason}; starting it again in {pause:.1f} s")

    def _hangs(self, child: Child) -> str:
        """Why a living child counts as dead; empty when it does not."""
        if child.name == "web" and self.web_watch is not None:
            silent = clock.monotonic() - max(child.started_at, self.web_watch.last_answer or 0.0)
            return "does not answer any more" if silent > WEB_SILENT_SECONDS else ""
        if child.name == "worker" and self.worker_watch is not None and self.worker_watch.reachable:
            silent = clock.monotonic() - max(child.started_at, self.worker_watch.last_beat or 0.0)
            return "shows no sign of life" if silent > STALE_SECONDS else ""
        return ""

    def _end(self) -> None:
        """End the parts in order. All are asked at once; each has its grace."""
        order = sorted(self.children, key=lambda child: ["web", "worker", "emulator"].index(child.name))
        for child in order:
            if child.process is not None and child.name != "emulator":
                child.process.terminate()
        for child in order:
            if child.process is not None:
                end(child.process, signal.SIGTERM, GRACE_SECONDS[child.name])
        if self.cluster is not None:
            self.cluster.stop()


def how(code: int) -> str:
    """How a process ended, in words."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def emulator_arguments(port: int) -> list[str]:
    """The emulator's command line. Any account of this machine reaches its port: it keeps no words, and whoever is
    there neither reads what was asked nor says what is answered."""
    place = ["--host", "127.0.0.1", "--port", str(port)]
    return [
        *(sys.executable, "-m", "llm.emulator", *place),
        *("--pace", settings.EMULATOR_PACE, "--no-bodies", "--no-control", "--die-with-parent"),
    ]


def web_arguments(plan: Plan) -> list[str]:
    """uvicorn's command line. A client that stops reading holds back its own sender, within these limits."""
    arguments = [
        *(sys.executable, "-m", "uvicorn", "maxclaw.asgi:application"),
        *("--host", plan.host, "--port", str(plan.port)),
        *("--ws-max-size", str(settings.SOCKET_MAX_BYTES), "--ws-max-queue", "4"),
        *("--timeout-graceful-shutdown", str(WEB_REQUESTS_SECONDS), "--lifespan", "on"),
        *("--no-server-header", "--log-level", "warning"),
        # Believed only behind the proxy that MAXCLAW_HTTPS says is there.
        "--proxy-headers" if settings.HTTPS else "--no-proxy-headers",
    ]
    return [*arguments, "--reload"] if plan.reload else arguments


def demand_free_port(host: str, port: int) -> None:
    """Raise PreparationError when nobody can listen there."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
            probe.listen()
    except OSError as error:
        raise PreparationError(
            f"Port {port} on {host} cannot be used ({error.strerror}). Choose another with --port or MAXCLAW_PORT."
        ) from None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
