"""Hot or cold: whether a question may follow a conversation's own last request, or a light model reads rendered pages.

One pure function over what is known of the prefix. The order is that of the reason codes: the first that is missing is
the reason.
"""

from dataclasses import dataclass
from datetime import datetime

from shadow.models import ShadowRun

Reason = ShadowRun.PathReason


@dataclass(frozen=True)
class PrefixFacts:
    """What is known of the newest turn request of the generation that is to be read.

    `answer_complete`: it got a whole answer, which stands in the record. `at_present_cut`: nothing left the context
    since. `expires`: when its cache entry runs out. `cached_tokens`: read or written, as its usage tells; None where it
    does not. `model_unchanged`: model, effort and thinking are what the catalog and the conversation say now.
    `model_may_read`: the catalog lets it read the conversation's category. `has_tool`: its tool list has the proposal
    tool. `page_fits`: the model's window has room for a page behind it, and for the answer. `digest_holds`: the record
    gives the request again, byte for byte.
    """

    answer_complete: bool
    at_present_cut: bool
    expires: datetime
    cached_tokens: int | None
    model_unchanged: bool
    model_may_read: bool
    has_tool: bool
    page_fits: bool
    digest_holds: bool


def why_cold(prefix: PrefixFacts | None, now: datetime) -> ShadowRun.PathReason | None:
    """Why a run cannot be hot; None: it can. `prefix` is None for a generation without any turn request."""
    if prefix is None:
        return Reason.NO_PREFIX
    checks = (
        (prefix.answer_complete, Reason.INCOMPLETE_ANSWER),
        (prefix.at_present_cut, Reason.EARLIER_CUT),
        (now < prefix.expires, Reason.EXPIRED),
        (bool(prefix.cached_tokens), Reason.NOTHING_CACHED),
        (prefix.has_tool, Reason.TOOL_MISSING),
        (prefix.model_unchanged, Reason.MODEL_CHANGED),
        (prefix.model_may_read, Reason.CATEGORY_CHANGED),
        (prefix.page_fits, Reason.NO_ROOM),
        (prefix.digest_holds, Reason.DIGEST_DIFFERS),
    )
    return next((reason for holds, reason in checks if not holds), None)
