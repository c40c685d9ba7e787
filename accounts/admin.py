"""Accounts for staff. Deleting one erases everything of its owner's, by the one way that there is."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from accounts import erasing
from accounts.models import User

admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):
    """Django's own, in the theme of the rest."""


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):
    """Django's own, with a person's time zone and language."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    fieldsets = (*(DjangoUserAdmin.fieldsets or ()), (_("Preferences"), {"fields": ("time_zone", "language")}))

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Nobody erases the account that they are signed in with from here."""
        if obj is not None and obj == request.user:
            return False
        return super().has_delete_permission(request, obj)

    def get_deleted_objects(
        self, objs: QuerySet[User] | Sequence[User], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Who goes. All that is theirs goes along, whatever other permissions the staff member has."""
        users = list(objs)
        protected = [user.username for user in users if user == request.user]
        return [user.username for user in users], {str(User._meta.verbose_name_plural): len(users)}, set(), protected

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        erasing.erase_user(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset:
            erasing.erase_user(user)
