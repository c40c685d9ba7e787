"""Translatable text is found in templates and Python, and translations survive collecting."""

from io import BytesIO

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from maxclaw.message_catalogues import KEYWORDS, LOCALES, ROOT, collect, extract_template, is_translated, update

TEMPLATE = """{% load i18n %}
<p class="x">{% translate "Hello" %} {{ _("yo")|upper }}
      <b>don't</b>  {% blocktranslate count n=3 trimmed %}
         One thing {{ n }}{% plural %}{{ n }} things
{% endblocktranslate %}</p>
    <a title="{% translate 'May' context "month" %}">{</a>
"""


def test_every_form_of_djangos_template_tags_is_found():
    found = list(extract_template(BytesIO(TEMPLATE.encode()), KEYWORDS, [], {}))
    assert [(line, name) for line, name, _, _ in found] == [
        (2, "gettext"),
        (2, "_"),
        (3, "ngettext"),
        (6, "pgettext"),
    ]
    messages = [message for _, _, message, _ in found]
    assert messages[0] == "Hello" and messages[1] == "yo"
    assert messages[2][:2] == ("One thing %(n)s", "%(n)s things")
    assert messages[3] == ("month", "May")


def test_collecting_again_keeps_translations_and_changes_nothing(tmp_path):
    path = tmp_path / "zh_Hans" / "LC_MESSAGES" / "django.po"
    found = Catalog()
    found.add("Stop", locations=[("a.py", 3)])
    assert update(path, "zh_Hans", found) == 1
    path.write_text(path.read_text().replace('msgid "Stop"\nmsgstr ""', 'msgid "Stop"\nmsgstr "停止"'))
    before = path.read_bytes()
    assert update(path, "zh_Hans", found) == 0
    assert path.read_bytes() == before
    with path.open("rb") as file:
        message = read_po(file).get("Stop")
    assert message and message.string == "停止"


def test_the_projects_own_text_is_found_and_nobody_elses():
    found = collect()
    assert found.get("last beat") is not None  # maxclaw/models.py
    files = {file for message in found for file, _ in message.locations}
    assert not [file for file in files if file.startswith(("tests/", ".venv/", "var/"))]


@pytest.mark.parametrize("locale", LOCALES)
def test_every_text_is_translated_and_the_catalogue_holds_no_other(locale):
    with (ROOT / "locale" / locale / "LC_MESSAGES" / "django.po").open("rb") as file:
        catalogue = read_po(file)

    def key(message):
        return message.context, message.id

    texts = {key(message): message for message in catalogue if message.id}
    collected = {key(message) for message in collect() if message.id}
    assert collected - texts.keys() == set(), "run `make messages`"
    assert texts.keys() - collected == set(), "run `make messages`"
    left = [message.id for message in texts.values() if message.fuzzy or not is_translated(message)]
    assert left == []
