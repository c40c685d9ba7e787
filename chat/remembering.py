"""What a person does to what is remembered of them: what the pages and the REST API share."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from accounts.models import User
from agent.refusals import Refused
from memory import changing, forgetting
from memory.access import NoSuchFact, access_fact
from memory.forgetting import Forgotten
from memory.forms import OVERTAKEN, corrected
from memory.models import Fact
from memory.refusals import FactRefused
from memory.remembered import name_of
from threads.models import Generation, Message, Thread

PERSON = Fact.Writer.PERSON
NO_SUCH_FACT = _("Nothing of this is remembered. It may have been forgotten.")


def own_fact(user: User, fact_id: Any) -> Fact:
    """The person's fact. Raises Refused where there is none, whoever else may have one of that id."""
    try:
        return access_fact(user, fact_id)
    except NoSuchFact:
        raise Refused("no-such-fact", str(NO_SUCH_FACT)) from None


def correct(user: User, fact: Fact, typed: dict[str, str]) -> Fact:
    """Put a fact of the person's right: `typed` has its "text", "applies_to" and "tone". Returns the new one. Raises
    Refused."""
    said = corrected(fact, typed)
    if said == corrected(fact, {}) and fact.status == Fact.Status.ACTIVE:
        return fact
    try:
        return changing.correct(fact, said, reason="", writer=PERSON, actor=user)
    except FactRefused:
        raise Refused("overtaken", str(OVERTAKEN)) from None


def set_aside(user: User, fact: Fact) -> Fact:
    """Use a fact of the person's no more, until it is brought back. Raises Refused."""
    try:
        return changing.retire(fact, reason="", writer=PERSON, actor=user)
    except FactRefused:
        raise Refused("overtaken", str(OVERTAKEN)) from None


@dataclass(frozen=True)
class Place:
    """Where words of a forgotten fact stay: a message, or generation `ordinal` of the conversation."""

    channel: str
    title: str
    in_main: bool
    message_id: int | None
    ordinal: int | None

    @property
    def name(self) -> str:
        """What people call the conversation."""
        return name_of(self.title, self.in_main)


@dataclass(frozen=True)
class Parting:
    """What goes with a fact that is forgotten, how many versions of it in all; and where its words stay: the newest
    places, and how many older ones there are."""

    versions: int
    stays: list[Place]
    more: int


def foresee(user: User, fact: Fact) -> Parting:
    """What forgetting a fact of the person's would mean."""
    return _parting(user, forgetting.foresee(fact))


def forget(user: User, fact: Fact) -> Parting:
    """Forget a fact of the person's for good, its earlier versions with it. Raises Refused."""
    try:
        report = forgetting.forget(fact, writer=PERSON, actor=user)
    except FactRefused:
        raise Refused("no-such-fact", str(NO_SUCH_FACT)) from None
    return _parting(user, report)


def _parting(user: User, report: Forgotten) -> Parting:
    """The report with names instead of ids. What stands in deleted conversations goes with these."""
    columns = ("thread__channel", "thread__title", "thread__kind")
    rows = {"owner_id": user.pk, "thread__deleted": None}
    messages = Message.objects.filter(pk__in=report.messages, **rows).order_by("pk").values(*columns, "pk")
    generations = (
        Generation.objects.filter(pk__in=report.generations, **rows).order_by("pk").values(*columns, "ordinal")
    )
    stays = [
        Place(
            row["thread__channel"],
            row["thread__title"],
            row["thread__kind"] == Thread.Kind.MAIN,
            row.get("pk"),
            row.get("ordinal"),
        )
        for row in [*messages, *generations]
    ]
    return Parting(len(report.facts), stays, report.more)


def bring_back(user: User, fact: Fact) -> Fact:
    """Make what was set aside or replaced count again. Where a correction stands in its place, that goes. Raises
    Refused."""
    newer = fact.superseded_by
    try:
        if newer is not None and newer.status == Fact.Status.ACTIVE and newer.writer == PERSON:
            return changing.correct(newer, corrected(fact, {}), reason="", writer=PERSON, actor=user)
        return changing.restore(fact, reason="", writer=PERSON, actor=user)
    except FactRefused:
        raise Refused("overtaken", str(OVERTAKEN)) from None
