"""`make messages`: collects translatable text from Python and templates into the catalogues under `locale/`.

With Babel alone, so that no machine needs GNU gettext. The page's own JavaScript gets its words from Python.
"""

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir, extract_python
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
LOCALES = ["zh_Hans"]
LEFT_OUT = {".venv", "var", "build", "tests", "benchmarks", "migrations", "node_modules"}
KEYWORDS: dict[str, tuple[int | tuple[int, str], ...] | None] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
METHODS = [
    ("**.py", "python"),
    ("**/templates/**.html", "maxclaw.message_catalogues:extract_template"),
    ("templates/**.html", "maxclaw.message_catalogues:extract_template"),
]


def extract_template(
    file: IO[bytes], keywords: Mapping[str, Any], comment_tags: Collection[str], options: Mapping[str, Any]
) -> Iterator[Any]:
    """Babel's extraction method for Django's template language: Django itself turns tags into Python calls."""
    # Around the calls stands filler, which need not be valid Python: only the lines with calls are kept.
    lines = [
        line.strip() if "gettext(" in line or "_(" in line else ""
        for line in templatize(file.read().decode()).splitlines()
    ]
    return extract_python(BytesIO("\n".join(lines).encode()), keywords, comment_tags, {})


def collect() -> Catalog:
    """Every translatable text of the project, with the files it stands in."""
    found = Catalog(project="MaxClaw", charset="utf-8")
    messages = extract_from_dir(
        ROOT, METHODS, keywords=KEYWORDS, comment_tags=["Translators:"], directory_filter=_is_ours
    )
    for file, line, message, comments, context in messages:
        found.add(message, locations=[(file, line)], auto_comments=comments, context=context)
    return found


def _is_ours(folder: str | os.PathLike[str]) -> bool:
    name = Path(folder).name
    return name not in LEFT_OUT and not name.startswith(".")


def update(path: Path, locale: str, found: Catalog) -> int:
    """Bring one catalogue up to date, keeping its translations. Returns how many texts it does not translate."""
    catalogue = Catalog(locale=locale, project="MaxClaw", version="", charset="utf-8", fuzzy=False)
    if path.exists():
        with path.open("rb") as file:
            catalogue = read_po(file, locale=locale)
    created = catalogue.creation_date
    catalogue.update(found, no_fuzzy_matching=True)
    catalogue.header_comment = "# MaxClaw in another language. `make messages` collects the texts."
    catalogue.creation_date = created  # a run that finds nothing new changes nothing
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, catalogue, width=100, sort_by_file=True, include_lineno=False, ignore_obsolete=True)
    return sum(1 for message in catalogue if message.id and not is_translated(message))


def is_translated(message: Message) -> bool:
    strings = message.string if isinstance(message.string, (tuple, list)) else [message.string]
    return all(strings)


def main() -> None:
    settings.configure(USE_I18N=True)
    found = collect()
    for locale in LOCALES:
        path = ROOT / "locale" / locale / "LC_MESSAGES" / "django.po"
        missing = update(path, locale, found)
        sys.stdout.write(f"{path.relative_to(ROOT)}: {len(found)} texts, {missing} without a translation\n")


if __name__ == "__main__":
    main()
