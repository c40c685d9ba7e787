"""Accounts for staff. Deleting one is erasing everything of its owner's, by the one way that there is."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from accounts import erasing
from accounts.models import User
from maxclaw.admin_base import ConsoleAdmin
from maxclaw.admin_figures import Figure, figures

admin.site.unregister(Group)

# Who sets these decides what others may see, other people's private text included.
POWERS = ("is_staff", "is_superuser", "groups", "user_permissions")


CHANGES = {
    "add": _("may add"),
    "change": _("may change"),
    "delete": _("may delete"),
    "view": _("may see"),
}


def permission_name(permission: Permission) -> str:
    """What a permission lets people do, in the reader's language: Django keeps its own names of them in English."""
    table = permission.content_type
    verb = permission.codename.removesuffix(f"_{table.model}")
    return f"{table} | {CHANGES.get(verb) or gettext(permission.name)}"


class Granting:
    """A form in which permissions are chosen."""

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        field: Any = super().formfield_for_manytomany(db_field, request, **kwargs)  # type: ignore[misc]
        if db_field.related_model is Permission and field is not None:
            field.label_from_instance = permission_name
        return field


@admin.register(Group)
class GroupAdmin(Granting, DjangoGroupAdmin, ConsoleAdmin):
    """What groups may do. Superusers alone change it: whoever could would grant themselves everything."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return request.user.is_superuser

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return request.user.is_superuser


@admin.register(User)
class UserAdmin(Granting, DjangoUserAdmin, ConsoleAdmin):
    """Django's own, with a person's time zone and language, and erasing in the place of deleting.

    Staff who are no superusers change no superuser, grant nothing and set nobody's password: with it they could
    sign in as that person and read what is private.
    """

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "first_name", "last_name", "is_active", "is_staff", "last_login", "date_joined")
    actions = ("activate", "deactivate")
    fieldsets = (*(DjangoUserAdmin.fieldsets or ()), (_("Preferences"), {"fields": ("time_zone", "language")}))

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        fixed = ("last_login", "date_joined")
        return fixed if request.user.is_superuser else (*fixed, *POWERS)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return self._reaches(request, obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Nobody erases the account that they are signed in with from here."""
        return obj != request.user and self._reaches(request, obj) and super().has_delete_permission(request, obj)

    def _reaches(self, request: HttpRequest, obj: User | None) -> bool:
        return request.user.is_superuser or obj is None or not obj.is_superuser

    def get_actions(self, request: HttpRequest) -> Any:
        """No erasing of many at once: each is asked for by name."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        if not request.user.is_superuser:
            raise PermissionDenied
        return super().user_change_password(request, id, form_url)

    @admin.action(description=_("Let the chosen people sign in again"), permissions=["change"])
    def activate(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        self._set_active(request, queryset, active=True)

    @admin.action(description=_("Sign the chosen people out and keep them out"), permissions=["change"])
    def deactivate(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        self._set_active(request, queryset, active=False)

    def _set_active(self, request: HttpRequest, queryset: QuerySet[User], *, active: bool) -> None:
        """One's own account stays as it is, and so do those that one may not change."""
        users = [user for user in queryset if user != request.user and self.has_change_permission(request, user)]
        for user in users:
            user.is_active = active
            user.save(update_fields=["is_active"])
            self.log_change(request, user, [{"changed": {"fields": ["is_active"]}}])
        sentence = (
            ngettext("%(count)d account can sign in.", "%(count)d accounts can sign in.", len(users))
            if active
            else ngettext("%(count)d account is signed out.", "%(count)d accounts are signed out.", len(users))
        )
        self.message_user(request, sentence % {"count": len(users)}, messages.SUCCESS)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Erase a person: says what goes, asks for the name, and reports what went."""
        user = self.get_object(request, object_id)
        if user is None:
            raise Http404
        if not self.has_delete_permission(request, user):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Erase %(user)s") % {"user": user.username},
            "opts": self.opts,
            "person": user,
            "back_url": reverse(f"{self.admin_site.name}:accounts_user_change", args=[user.pk]),
        }
        if request.method == "POST":
            if request.POST.get("username") == user.username:
                return self._erase(request, user)
            context["wrong_name"] = True
        context["holdings"] = erasing.holdings(user)
        return TemplateResponse(request, "admin/console/erase.html", context)

    def _erase(self, request: HttpRequest, user: User) -> HttpResponse:
        assert isinstance(request.user, User)
        pk, name = user.pk, user.username
        with transaction.atomic():
            went = erasing.holdings(user)
            erasing.erase_user(user)
            # Who erased which account stays; what the person was called does not.
            LogEntry.objects.create(
                user=request.user,
                content_type=ContentType.objects.get_for_model(User),
                object_id=str(pk),
                object_repr="",
                action_flag=DELETION,
            )
        report = ", ".join(went)
        sentence = gettext("%(user)s was erased: %(report)s.") if went else gettext("%(user)s was erased.")
        self.message_user(request, sentence % {"user": name, "report": report}, messages.SUCCESS)
        return HttpResponseRedirect(reverse(f"{self.admin_site.name}:accounts_user_changelist"))


@figures(_("People"), place=40, permissions=("accounts.view_user",))
def people_figures(request: HttpRequest) -> Iterable[Figure]:
    """How many accounts there are, and who keeps the server."""
    listed = reverse("admin:accounts_user_changelist")
    active = User.objects.filter(is_active=True)
    yield Figure(_("Accounts"), active.count(), hint=_("that can sign in"), url=f"{listed}?is_active__exact=1")
    yield Figure(_("Staff"), active.filter(is_staff=True).count(), url=f"{listed}?is_staff__exact=1")
