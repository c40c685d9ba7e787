"""Foreign keys point down: string references hide from the import contract."""

from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.db.models import ForeignObject, ManyToManyField

LAYERS = [
    {"accounts"},
    {"llm"},
    {"threads"},
    {"agent"},
    {"quotes", "projects"},
    {"memory"},
    {"shadow"},
    {"chat"},
]


def level_of(app_label: str) -> int | None:
    """The layer of one of our apps; None for parts that we use and for the project itself."""
    return next((number for number, layer in enumerate(LAYERS) if app_label in layer), None)


def points_down(source: str, target: str) -> bool:
    """Whether a row of `source` may refer to a row of `target`. Below ours stand Django's own apps."""
    from_level, to_level = level_of(source), level_of(target)
    if to_level is None:
        return True
    return source == target or (from_level is not None and to_level < from_level)


def test_foreign_keys_point_down():
    upward = [
        f"{model._meta.label}.{field.name} -> {field.related_model._meta.label}"
        for model in apps.get_models(include_auto_created=True)
        if level_of(model._meta.app_label) is not None
        for field in model._meta.get_fields()
        if isinstance(field, ForeignObject | ManyToManyField)
        and not points_down(model._meta.app_label, field.related_model._meta.app_label)
    ]
    assert upward == []


def test_a_key_that_points_up_or_sideways_would_be_found():
    assert points_down("chat", "threads")
    assert points_down("threads", "auth")
    assert not points_down("threads", "agent")
    assert not points_down("quotes", "projects")


def test_every_app_of_ours_has_a_layer():
    ours = {config.label for config in apps.get_app_configs() if Path(config.path).parent == settings.BASE_DIR}
    assert {label for label in ours if level_of(label) is None} == {"maxclaw"}
