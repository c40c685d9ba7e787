"""Every page of the console, and what its tables hold."""

from django.apps import apps
from django.contrib import admin
from django.db import connection
from django.test import RequestFactory
from django.urls import reverse

from accounts.models import User


def name_of(model):
    return f"{model._meta.app_label}_{model._meta.model_name}"


def pages():
    """Every page of the console that a GET may ask for, rows included."""
    yield reverse("admin:index")
    yield reverse("admin:agent_health")
    yield reverse("admin:llm_modelcall_costs")
    yield reverse("admin:llm_modelcall_costs") + "?days=7&by=purpose"
    yield reverse("admin:memory_fact_overview") + "?days=7"
    yield reverse("admin:shadow_shadowrun_comparison") + "?days=7"
    yield reverse("admin:shadow_shadowrun_comparison") + "?format=json"
    yield reverse("admin:shadow_shadowfactproposal_review")
    for label in {model._meta.app_label for model in admin.site._registry}:
        yield reverse("admin:app_list", args=[label])
    for model, options in admin.site._registry.items():
        yield reverse(f"admin:{name_of(model)}_changelist")
        for row in options.get_queryset(None)[:2]:
            yield reverse(f"admin:{name_of(model)}_change", args=[row.pk])
            yield reverse(f"admin:{name_of(model)}_history", args=[row.pk])


def rows():
    """What every table holds, but for sessions and the notes of sign-ins that any request may write."""
    found = {}
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            if model._meta.app_label in ("sessions", "axes"):
                continue
            table = model._meta.db_table
            cursor.execute(
                f"SELECT md5(coalesce(string_agg(t::text, chr(10) ORDER BY t::text), '')) FROM \"{table}\" t"
            )
            found[table] = cursor.fetchone()[0]
    return found


def request_of_staff():
    request = RequestFactory().get("/")
    request.user = User.objects.get(is_superuser=True)
    return request
