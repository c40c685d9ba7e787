"""Which model answers: a palette's first healthy one that may read the conversation's category.

Health is this process's own experience: a model that was given up rests for a while, longer each time, and
comes last meanwhile, never nowhere.
"""

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from llm import catalog
from llm.catalog import Model
from llm.catalog_entries import ALL
from llm.errors import ErrorKind, ModelError
from maxclaw import clock

FIRST_REST_SECONDS = 5
LONGEST_REST_SECONDS = 300
# What is wrong with the model or its server; a full context or an output limit is the request's own matter.
HEALTH_KINDS = frozenset({ErrorKind.TRANSIENT, ErrorKind.CREDENTIAL})


class NoModelForCategory(Exception):
    """No model of the palette may read this category. The text is a sentence that says what to change."""


@dataclass
class _Health:
    failures: int
    rests_until: datetime


_health: dict[str, _Health] = {}
_lock = threading.Lock()


def candidates(palette: str, category: str, preferred: str = "") -> list[Model]:
    """The models to ask, in order. Raises NoModelForCategory.

    `preferred` (a catalog name; may stand outside the palette) comes first among the healthy ones that may
    read the category. A resting model comes last. A model not tagged with the category is never among them.
    """
    return sorted(_allowed(palette, category, preferred), key=lambda model: not is_healthy(model))


def first_choice(palette: str, category: str, preferred: str = "") -> Model:
    """The model that is asked when all are healthy: the others serve the turns in which it is not. Raises
    NoModelForCategory."""
    return _allowed(palette, category, preferred)[0]


def _allowed(palette: str, category: str, preferred: str) -> list[Model]:
    models = list(catalog.palette(palette))
    chosen = catalog.load_catalog().models.get(preferred) if preferred else None
    if chosen is not None:
        models = [chosen, *(model for model in models if model.name != chosen.name)]
    allowed = [model for model in models if model.reads(category)]
    if not allowed:
        raise NoModelForCategory(
            _(
                "No model may read conversations labelled %(category)s. "
                "Whoever runs this server can tag one with it in the model catalog."
            )
            % {"category": category}
        )
    return allowed


def readable_categories(palette: str) -> list[str] | None:
    """Labels of conversations that some model of the palette may read, the blank one among them; None: all, those too
    that the catalog knows no more. It takes another catalog, and so a server that starts anew, to change that."""
    models = catalog.palette(palette)
    if any(model.categories == ALL for model in models):
        return None
    return [label for label in ("", *catalog.categories()) if any(model.reads(label) for model in models)]


def unread_categories(palette: str) -> list[str]:
    """Labels of the catalog that no model of the palette may read."""
    readable = readable_categories(palette)
    return [] if readable is None else [label for label in catalog.categories() if label not in readable]


def is_healthy(model: Model) -> bool:
    """Whether the model is not resting after it was given up."""
    health = _health.get(model.name)
    return health is None or health.rests_until <= clock.now()


def report(model: Model, error: ModelError | None) -> None:
    """Tell how a model did: None for an answer, else the error that it was given up for."""
    with _lock:
        if error is None:
            _health.pop(model.name, None)
        elif error.kind in HEALTH_KINDS or error.rule == "model_not_found":
            failures = _health[model.name].failures + 1 if model.name in _health else 1
            rest = min(FIRST_REST_SECONDS * 2 ** min(failures - 1, 10), LONGEST_REST_SECONDS)
            rest = max(rest, min(error.retry_after or 0, LONGEST_REST_SECONDS))
            _health[model.name] = _Health(failures, clock.now() + timedelta(seconds=rest))


def forget() -> None:
    """Take every model for healthy."""
    with _lock:
        _health.clear()
