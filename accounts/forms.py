"""What a person changes about their own account, and how they prove that it is theirs."""

from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.forms import PasswordChangeForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from accounts.models import User

WRONG_PASSWORD = _("This is not your password.")


def proves_identity(request: HttpRequest, user: User, password: str) -> bool:
    """Whether the password is the user's. Asked as a sign-in is, so that guessing is throttled here too."""
    return authenticate(request, username=user.username, password=password) == user


class PreferencesForm(forms.ModelForm):
    """Time zone and language."""

    class Meta:
        model = User
        fields = ("time_zone", "language")


class OwnPasswordForm(PasswordChangeForm):
    """Django's own form, with guessing of the old password throttled."""

    def __init__(self, user: User, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.request = request

    def clean_old_password(self) -> str:
        old: str = self.cleaned_data["old_password"]
        if not proves_identity(self.request, self.user, old):
            raise ValidationError(WRONG_PASSWORD, code="password_incorrect")
        return old


class EraseForm(forms.Form):
    """The name typed and the password: nobody erases everything by a slip."""

    username = forms.CharField(
        label=_("Your name, as you sign in"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, user: User, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user, self.request = user, request

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if name != self.user.username:
            raise ValidationError(_("This is not the name of your account."))
        return name

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        if not proves_identity(self.request, self.user, password):
            raise ValidationError(WRONG_PASSWORD)
        return password
