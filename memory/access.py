"""The only doors to what is remembered. A person sees all of their own from outside any conversation, at every level;
the unknown and what belongs to someone else answer identically."""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from accounts.models import User
from memory.models import Fact
from threads.access import parse_message_id


class NoSuchFact(Exception):
    """Nothing that is remembered of this person has that id."""


def visible_to(user: User | AnonymousUser) -> QuerySet[Fact]:
    """What is remembered of a person, of every level and status, without the vectors. Nobody else's, whatever their
    role."""
    if not user.is_authenticated:
        return Fact.objects.none()
    return Fact.objects.filter(owner_id=user.pk).defer("embedding")


def access_fact(user: User | AnonymousUser, fact_id: Any) -> Fact:
    """The person's fact with this id (a number or its digits). Raises NoSuchFact."""
    number = parse_message_id(fact_id)
    fact = visible_to(user).filter(pk=number).first() if number is not None else None
    if fact is None:
        raise NoSuchFact
    return fact
