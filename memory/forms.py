"""What people type when they change what is remembered: the same fields for a person and for staff.

`memory.writing` judges too, in sentences for models; what a form can know is said here, in its reader's language.
"""

import unicodedata
from dataclasses import replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from maxclaw.text import visible
from memory import secrets
from memory.changing import draft_of
from memory.fact_drafts import APPLIES_TO_MAX_CHARS, TEXT_MAX_CHARS, FactDraft
from memory.models import Fact

REASON_MAX_CHARS = 500
# What is left when a form was right and the fact cannot be changed: somebody was faster.
OVERTAKEN = _("Nothing was changed: the fact is not what it was when you looked. Look again.")


class Typed(forms.CharField):
    """Words as they come: what no row can hold is made visible rather than refused."""

    def to_python(self, value: Any) -> str:
        return str(super().to_python(visible(value) if isinstance(value, str) else value))


class Remembered(Typed):
    """Words that are to be remembered: no secrets among them."""

    def validate(self, value: Any) -> None:
        super().validate(value)
        if secrets.kinds_in(value):
            raise ValidationError(_("Secrets are not remembered. Leave the key, password or card number out."))


class ReasonForm(forms.Form):
    """Why something is done. It stands in the log."""

    reason = Typed(label=_("Reason"), max_length=REASON_MAX_CHARS)


class TextForm(forms.Form):
    """The words of a fact."""

    text = Remembered(
        label=_("What should be remembered"),
        max_length=TEXT_MAX_CHARS,
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        if not any(unicodedata.category(sign)[0] in "LN" for sign in text):
            raise ValidationError(_("It needs words."))
        return text


class CorrectionForm(TextForm):
    """How a fact should read."""

    applies_to = Remembered(
        label=_("What it applies to"),
        max_length=APPLIES_TO_MAX_CHARS,
        required=False,
        help_text=_("Blank: in general."),
    )
    tone = forms.ChoiceField(label=_("How it was meant"), choices=Fact.Tone.choices)


class StaffCorrectionForm(CorrectionForm, ReasonForm):
    """The same by staff, who say why."""

    field_order = ("text", "applies_to", "tone", "reason")


class MergeForm(TextForm, ReasonForm):
    """The words that stand for several facts."""

    field_order = ("text", "reason")


def as_it_reads(fact: Fact) -> dict[str, str]:
    """The fact as a correction begins with it."""
    return {"text": fact.text, "applies_to": fact.applies_to, "tone": fact.tone}


def corrected(fact: Fact, typed: dict[str, str]) -> FactDraft:
    """The fact with what was typed in place of its "text", "applies_to" and "tone"."""
    said = {name: typed[name] for name in ("text", "applies_to", "tone") if name in typed}
    return replace(draft_of(fact), **said)
