"""How words and meaning become one order: standard scores added up, and a little of what stands around.

BM25 and cosine have scales of their own, and where they agree matters more than how far either goes: each is
standardised over the same excerpts before they are added. In a conversation the words that answer stand beside the
words that match (a question and its answer, a thing and what is said of it), so each excerpt takes a share of its
neighbours' scores where they are better than average. A poor neighbour tells nothing.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

# The share of the first, second and third neighbour's score, on either side.
NEIGHBOUR_SHARES = (0.5, 0.25, 0.12)


def fused(words: Numbers, cosines: Numbers, groups: Sequence[int]) -> Numbers:
    """The score of each of some excerpts, given in the order in which they were said. `words` is BM25, 0 without any
    word; `cosines` has NaN where there is no vector; excerpts are neighbours within a group (a conversation) alone."""
    return with_neighbours(standardised(words) + standardised(cosines), groups)


def standardised(values: Numbers) -> Numbers:
    """Standard scores: distance from the mean in standard deviations. What is unknown (NaN) counts as average, and so
    does everything where all are equal."""
    known = values[~np.isnan(values)]
    spread = float(known.std()) if known.size else 0.0
    if spread < 1e-9:
        return np.zeros_like(values)
    return np.nan_to_num((values - known.mean()) / spread)


def with_neighbours(scores: Numbers, groups: Sequence[int]) -> Numbers:
    """Scores with the shares of their neighbours in the same group added, of those above zero."""
    same = np.asarray(groups)
    result, good = scores.copy(), np.maximum(scores, 0.0)
    for distance, share in enumerate(NEIGHBOUR_SHARES, 1):
        together = same[distance:] == same[:-distance]
        result[distance:] += share * good[:-distance] * together
        result[:-distance] += share * good[distance:] * together
    return result


def near(chosen: NDArray[np.bool_], groups: Sequence[int]) -> NDArray[np.bool_]:
    """Whether an excerpt is chosen or a neighbour of one that is."""
    same = np.asarray(groups)
    result = chosen.copy()
    for distance in range(1, len(NEIGHBOUR_SHARES) + 1):
        together = same[distance:] == same[:-distance]
        result[distance:] |= chosen[:-distance] & together
        result[:-distance] |= chosen[distance:] & together
    return result
