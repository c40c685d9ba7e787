"""Charts of the console: what the theme's Chart.js is given. Readable in light and dark."""

import json
from collections.abc import Iterable, Mapping, Sequence

from django.utils.functional import Promise

# Told apart by colour-blind eyes too; the list goes round when there are more.
COLOURS = ("#1f6b5a", "#d98e2b", "#5b7fb8", "#b0475f", "#7a6aa8", "#6f9a3e", "#3aa0a8", "#8a6d4b")
GREY = "#7d8681"


def stacked_bars(labels: Iterable[str | Promise], series: Mapping[str, Sequence[float]]) -> str:
    """Chart.js data: one stack of bars a label, one colour a series."""
    datasets = [
        {"label": name, "data": list(values), "backgroundColor": COLOURS[index % len(COLOURS)]}
        for index, (name, values) in enumerate(series.items())
    ]
    return json.dumps({"labels": [str(label) for label in labels], "datasets": datasets})


def stacked_options(*, lying: bool = False, whole: bool = False) -> str:
    """Chart.js options: stacked, with a legend. `lying` bars have room for long labels, all of which are shown; `whole`
    values have no fractions between them."""
    ticks = {"color": GREY, "maxRotation": 0, "autoSkipPadding": 16}
    axis = {"stacked": True, "border": {"width": 0}, "ticks": ticks}
    labels = {**axis, "ticks": {**ticks, "autoSkip": not lying}, "grid": {"display": False}}
    values = {**axis, "ticks": {**ticks, **({"precision": 0} if whole else {})}, "beginAtZero": True}
    values["grid"] = {"tickWidth": 0}
    return json.dumps(
        {
            "animation": False,
            "indexAxis": "y" if lying else "x",
            "maintainAspectRatio": False,
            "plugins": {"legend": {"position": "bottom", "labels": {"boxWidth": 10, "boxHeight": 10, "color": GREY}}},
            "scales": {"x": values, "y": labels} if lying else {"x": labels, "y": values},
        }
    )
