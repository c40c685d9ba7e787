"""Facts that were kept elsewhere: one JSON object a line, imported without evidence and so marked as legacy.

| key | meaning |
|---|---|
| `text` | the fact, in words |
| `kind` | optional: `about-user` (the default), `event` or `pointer` |
| `aspect` | optional, of `about-user` alone: `fact` (the default), `preference`, `decision`, `correction`, `identity` |
| `applies_to` | optional: what it applies to; left out: in general |
| `tone` | optional: `remark` (the default) or `decision` |
| `project` | optional |
| `created` | optional: when it was written, ISO 8601, from the year 2 on; a time without an offset is UTC |

Relative times in the words ("last week") become dates, seen from `created`. Of a line without it nobody knows from when
they are seen, and today is not it: the words stay, and are counted. Other keys are left alone. A fact that was imported
before, whatever has become of it since, is not imported again; of one that was forgotten, the fingerprint of its words
says so.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.days import moment_of
from accounts.models import User
from maxclaw import clock
from memory.fact_drafts import FactDraft, check_no_secret, clean, dated, fingerprint_of
from memory.fact_rows import lock_facts
from memory.forgotten import marks_of
from memory.models import Fact, FactLog
from memory.refusals import FactRefused

BATCH_LINES = 500
LINE_MAX_BYTES = 100_000

OnProblem = Callable[[int, str], None]
OnProgress = Callable[[int], None]
_Key = tuple[str, str, str]


class BrokenLine(ValueError):
    """A line that cannot be imported. The text says why."""


@dataclass
class ImportReport:
    """What an import came to, in lines. `broken` ones were reported one by one; `undated` ones hold a relative time and
    do not say when they were written."""

    seen: int = 0
    added: int = 0
    already_there: int = 0
    broken: int = 0
    undated: int = 0


def parse_line(raw: bytes) -> tuple[FactDraft, datetime | None]:
    """The fact in one line, and when it was written (None, if the line does not say). Raises BrokenLine."""
    if len(raw) > LINE_MAX_BYTES:
        raise BrokenLine(_("It is too long."))
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        raise BrokenLine(_("It is no JSON.")) from None
    if not isinstance(record, dict):
        raise BrokenLine(_("It is no JSON object."))
    values = {key: record[key] for key in FactDraft.__dataclass_fields__ if record.get(key) not in (None, "")}
    wrong = next((key for key, value in values.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise BrokenLine(_("Its %(key)s is no text.") % {"key": wrong})
    values.setdefault("text", "")
    values.setdefault("kind", Fact.Kind.ABOUT_USER)
    if values["kind"] == Fact.Kind.ABOUT_USER:
        values.setdefault("aspect", Fact.Aspect.FACT)
    try:
        draft = clean(FactDraft(**values))
        check_no_secret(draft)
    except FactRefused as refusal:
        raise BrokenLine(str(refusal)) from None
    return draft, _created(record.get("created"))


def import_facts(
    owner: User, lines: Iterable[bytes], *, on_problem: OnProblem, on_progress: OnProgress = lambda _seen: None
) -> ImportReport:
    """Import lines, some hundreds in a transaction, so that it can be stopped at any time and run again. `on_problem`
    gets the number of each broken line, from 1, and why; `on_progress` how many lines were seen."""
    report = ImportReport()
    now = clock.now()
    numbered = enumerate(lines, 1)
    while batch := list(islice(numbered, BATCH_LINES)):
        drafts = []
        for number, raw in batch:
            if not raw.strip():
                continue
            report.seen += 1
            try:
                draft, created = parse_line(raw)
            except BrokenLine as broken:
                report.broken += 1
                on_problem(number, str(broken))
                continue
            absolute = dated(draft, created or now, owner)
            report.undated += created is None and absolute != draft
            drafts.append((draft if created is None else absolute, created or now))
        added = _write(owner, drafts)
        report.added += added
        report.already_there += len(drafts) - added
        on_progress(report.seen)
    return report


def _write(owner: User, drafts: Sequence[tuple[FactDraft, datetime]]) -> int:
    """Write those that are new. The tick embeds them."""
    with transaction.atomic():
        lock_facts(owner.pk)
        made = {_key(draft): _fact(owner, draft, created) for draft, created in reversed(drafts)}
        prints = [fingerprint for fingerprint, _applies_to, _kind in made]
        known = Fact.objects.filter(owner=owner, scope="open", category="", fingerprint__in=prints)
        for fingerprint, applies_to, kind in known.values_list("fingerprint", "applies_to", "kind"):
            made.pop((fingerprint, fingerprint_of(applies_to), kind), None)
        marks = {mark: fingerprint for fingerprint in prints for mark in marks_of(owner.pk, fingerprint)}
        entries = FactLog.objects.filter(owner=owner, forgotten__overlap=list(marks))
        kept = chain.from_iterable(entries.values_list("forgotten", flat=True))
        gone = {marks[mark] for mark in kept if mark in marks}
        made = {key: fact for key, fact in made.items() if fact.fingerprint not in gone}
        return len(Fact.objects.bulk_create(reversed(made.values())))


def _key(draft: FactDraft) -> _Key:
    return fingerprint_of(draft.text), fingerprint_of(draft.applies_to), draft.kind


def _fact(owner: User, draft: FactDraft, created: datetime) -> Fact:
    return Fact(
        owner=owner,
        text=draft.text,
        kind=draft.kind,
        aspect=draft.aspect,
        applies_to=draft.applies_to,
        tone=draft.tone,
        project=draft.project,
        writer=Fact.Writer.IMPORT,
        legacy=True,
        fingerprint=fingerprint_of(draft.text),
        created=created,
        changed=clock.now(),
    )


def _created(value: Any) -> datetime | None:
    if value is None:
        return None
    try:
        created = moment_of(value)
    except (TypeError, ValueError):
        raise BrokenLine(_("Its created is no time.")) from None
    if created > clock.now():
        raise BrokenLine(_("Its created lies in the future."))
    return created
