"""One's own conversations, and nothing that tells whether others exist."""

import pytest
from django.contrib.auth.models import AnonymousUser

from tests.threads.records import say, thread_of
from threads.access import NoSuchMessage, NoSuchThread, access_message, access_thread, visible_to
from threads.models import Message, Thread

pytestmark = pytest.mark.django_db
NO_CHANNELS = ["", "nosuchthread", "a" * 21, "with space", "\x00", "ABC", None, 7, ["x"], "é", "abc\n"]
NO_IDS = [None, "", "x", "-1", -1, 0, "0", 2**63, str(2**63), "1" * 30, 1.5, True, [], "١", " 1", "1\n"]


def test_a_person_sees_their_own_threads_of_every_kind(alice, bob):
    task = thread_of(alice, kind="task", parent=thread_of(alice))
    thread_of(bob)
    assert {thread.kind for thread in visible_to(alice)} == {"main", "web", "task"}
    assert task in visible_to(alice)
    assert {thread.owner_id for thread in visible_to(alice)} == {alice.pk}
    assert not visible_to(AnonymousUser()).exists()


def test_staff_see_no_more_than_their_own(alice, bob):
    bob.is_staff = bob.is_superuser = True
    bob.save()
    with pytest.raises(NoSuchThread):
        access_thread(bob, thread_of(alice).channel)


def test_unknown_and_foreign_threads_answer_identically(alice, bob):
    foreign = thread_of(alice)
    answers = []
    for channel in (foreign.channel, "nosuchthread"):
        with pytest.raises(NoSuchThread) as caught:
            access_thread(bob, channel)
        answers.append((type(caught.value), caught.value.args))
    assert answers[0] == answers[1]
    assert access_thread(alice, foreign.channel) == foreign


@pytest.mark.parametrize("channel", NO_CHANNELS)
def test_what_is_no_channel_is_no_thread(alice, channel):
    with pytest.raises(NoSuchThread):
        access_thread(alice, channel)


def test_unknown_and_foreign_messages_answer_identically(alice, bob):
    message = say(thread_of(alice), Message.Role.USER)
    assert access_message(alice, message.pk) == access_message(alice, str(message.pk)) == message
    for user in (bob, AnonymousUser()):
        with pytest.raises(NoSuchMessage):
            access_message(user, message.pk)


@pytest.mark.parametrize("message_id", NO_IDS)
def test_what_is_no_id_is_no_message(alice, message_id):
    with pytest.raises(NoSuchMessage):
        access_message(alice, message_id)


def test_channels_are_unguessable_and_fit_their_own_pattern(alice):
    channels = {Thread(owner=alice).channel for _index in range(1000)}
    assert len(channels) == 1000
