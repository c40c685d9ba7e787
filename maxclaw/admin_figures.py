"""Numbers on the console's first page. Each app's `admin.py` brings its own, so that none knows of those above it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.http import HttpRequest
from django.utils import formats
from django.utils.functional import Promise

Words = str | Promise


@dataclass(frozen=True)
class Figure:
    """One number with its name. `alarm`: somebody should look at it. `hint` says what it counts, `url` leads to it.
    A whole number is shown with its thousands apart."""

    label: Words
    value: Words | int
    hint: Words = ""
    alarm: bool = False
    url: str = ""

    @property
    def shown(self) -> Words:
        return formats.number_format(self.value, force_grouping=True) if isinstance(self.value, int) else self.value


Source = Callable[[HttpRequest], Iterable[Figure]]


@dataclass(frozen=True)
class Group:
    """Figures that belong together, for those who have every one of `permissions`."""

    title: Words
    place: int
    permissions: tuple[str, ...]
    source: Source


_groups: dict[str, Group] = {}


def figures(title: Words, *, place: int, permissions: tuple[str, ...]) -> Callable[[Source], Source]:
    """Put what the function yields on the first page, under `title`, ordered by `place`."""

    def decorate(source: Source) -> Source:
        _groups[f"{source.__module__}.{source.__qualname__}"] = Group(title, place, permissions, source)
        return source

    return decorate


def visible_groups(request: HttpRequest) -> list[tuple[Words, list[Figure]]]:
    """Title and figures of each group that the signed-in person may see."""
    seen = [group for group in _groups.values() if request.user.has_perms(group.permissions)]
    return [(group.title, list(group.source(request))) for group in sorted(seen, key=lambda group: group.place)]
