"""Facts for tests, written straight into the table: without proof, as imported ones are, and with their vectors."""

from llm import embedding
from memory.models import Fact


def remember(owner, text, *, embedded=True, **fields):
    """One fact about a person, open unless said otherwise."""
    backend = embedding.configured()
    vector = (
        {"embedding": backend.embed([text[: backend.max_chars]])[0], "embedding_model": backend.name}
        if embedded
        else {}
    )
    given = {"kind": "about-user", "aspect": "fact", "tone": "remark", "writer": "import", "legacy": True}
    return Fact.objects.create(owner=owner, text=text, fingerprint=text[:64], **(given | vector | fields))
