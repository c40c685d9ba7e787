"""Why something is not remembered."""


class FactRefused(Exception):
    """A fact cannot be written or changed so. The text is a sentence for whoever asked, often a model."""


class EvidenceRefused(FactRefused):
    """Evidence does not prove what it is cited for."""
