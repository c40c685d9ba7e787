"""Time zones as people look for them: by city and country in their language, or by the zone's own name."""

from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo, available_timezones

from babel import Locale
from babel.core import get_global
from babel.dates import get_timezone_location

from maxclaw import clock

BABEL_LOCALES = {"en": "en", "zh-hans": "zh_Hans"}


@dataclass(frozen=True)
class ZoneChoice:
    """One zone to choose. `search` holds what else it is found by."""

    name: str
    label: str
    search: str


def zone_choices(language: str, current: str = "") -> list[ZoneChoice]:
    """Every zone of a place, and UTC, by name in `language`; `current` too when it is an older name of one."""
    places = _places(language)
    english = places if language == "en" else _places("en")
    names = sorted(places, key=lambda name: (places[name], name))
    if current and current not in places:
        names.insert(0, current)
    now = clock.now()
    choices = []
    for name in names:
        place = places.get(name, "")
        offset = now.astimezone(ZoneInfo(name)).utcoffset() or timedelta()
        label = " · ".join(part for part in (place, name, utc_offset(offset)) if part)
        choices.append(ZoneChoice(name, label, english.get(name, "") if english is not places else ""))
    return choices


def utc_offset(offset: timedelta) -> str:
    """An offset as people write it: UTC+08:00."""
    minutes = round(offset.total_seconds() / 60)
    sign = "−" if minutes < 0 else "+"
    return f"UTC{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


@lru_cache(maxsize=4)
def _places(language: str) -> dict[str, str]:
    """Zone to "city, country" for the zones of places that this machine knows."""
    locale = Locale.parse(BABEL_LOCALES.get(language, "en"))
    separator = "，" if locale.language == "zh" else ", "
    known = available_timezones()
    places = {"UTC": ""}
    for zone, territory in _territories().items():
        if zone in known:
            city = get_timezone_location(zone, locale=locale, return_city=True)
            country = locale.territories.get(territory, "")
            places[zone] = separator.join(dict.fromkeys(part for part in (city, country) if part))
    return places


def _territories() -> dict[str, str]:
    """Zone to its country's code: each place once, under its present name, as the machine's time zone data lists them;
    without such a list from CLDR, older names included."""
    for folder in TZPATH:
        table = Path(folder) / "zone.tab"
        if table.is_file():
            rows = [line.split("\t") for line in table.read_text().splitlines() if not line.startswith("#")]
            return {row[2]: row[0] for row in rows if len(row) > 2}
    return {zone: territory for zone, territory in get_global("zone_territories").items() if territory != "001"}
