"""Facts that answer a query. None is stored so far: this is where the search for them stands."""

from dataclasses import dataclass

from threads.visibility import Viewer


@dataclass(frozen=True)
class FactHit:
    """A fact as a search shows it."""

    fact_id: int
    text: str


def fact_hits(_viewer: Viewer, _query: str) -> list[FactHit]:
    """The facts that a viewer may see and that answer the query, best first."""
    return []
