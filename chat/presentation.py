"""How views read in a browser: the HTML of answers that have ended, pieces of them without the signs of Markdown."""

from typing import Any

from agent.projection import STREAMING
from chat.markdown import plain, render

View = dict[str, Any]


def present_message(message: View) -> View:
    """A MessageView with "html" when it is an ended answer; words by people and notices stay plain text."""
    if message["role"] != "assistant" or message["state"] == STREAMING or not message["text"]:
        return message
    return {**message, "html": render(message["text"])}


def piece_as_read(role: str, text: str) -> str:
    """A piece of a message, for a list: only answers are Markdown, and lose its signs; what people and tools said
    stands as they said it."""
    return plain(text) if role == "assistant" else text


def present_messages(messages: list[View]) -> list[View]:
    """Each of them presented."""
    return [present_message(message) for message in messages]


def present_event(event: View) -> View:
    """An event {"number", "kind", "body"} whose message, if it carries one, is presented."""
    if event["kind"] != "message":
        return event
    return {**event, "body": {"message": present_message(event["body"]["message"])}}


def needs_rendering(event: View) -> bool:
    """Whether presenting the event takes time that the event loop should not spend."""
    return event["kind"] == "message" and event["body"]["message"]["role"] == "assistant"
