import os
import pytest
from tests.chat.conftest import *  # noqa
from django.urls import reverse
from django.contrib import admin
from tests.maxclaw.console_records import fill, lapse
from tests.browser import PHONE
from tests.browser_checks import violations
from accounts.models import User
pytestmark=[pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]
OUT="/tmp/shots/admin"
LANGS=os.environ.get("SHOT_LANGS","en zh-hans").split(); SCHEMES=os.environ.get("SHOT_SCHEMES","light dark").split(); SIZES=os.environ.get("SHOT_SIZES","desktop phone").split()
ONLY=os.environ.get("SHOT_ONLY","").split()
def test_shots(server, alice, charlie, open_tab):
    os.makedirs(OUT, exist_ok=True)
    charlie.is_staff=charlie.is_superuser=True; charlie.save()
    thread=fill(alice, charlie); lapse(thread)
    from threads.models import Message
    message=Message.objects.filter(thread=thread).first()
    pages={"index":reverse("admin:index"),"health":reverse("admin:agent_health"),"costs":reverse("admin:llm_modelcall_costs"),
      "account":reverse("account"),"password":reverse("account-password"),"erase":reverse("account-erase"),"erased":reverse("account-erased"),
      "threads":reverse("admin:threads_thread_changelist"),"thread":reverse("admin:threads_thread_change",args=[thread.pk]),
      "message":reverse("admin:threads_message_change",args=[message.pk]),
      "usererase":reverse("admin:accounts_user_delete",args=[alice.pk]),"user":reverse("admin:accounts_user_change",args=[alice.pk]),"useradd":reverse("admin:accounts_user_add")}
    for model in admin.site._registry:
        n=f"{model._meta.app_label}_{model._meta.model_name}"
        pages.setdefault("list-"+n, reverse(f"admin:{n}_changelist"))
    found={}
    for size in SIZES:
        options=PHONE if size=="phone" else {"viewport":{"width":1360,"height":860}}
        for scheme in SCHEMES:
            tab=open_tab(server, charlie, color_scheme=scheme, **options)
            for lang in LANGS:
                User.objects.update(language=lang)
                for name,url in pages.items():
                    if ONLY and not any(name.startswith(o) for o in ONLY): continue
                    tab.page.goto(server.url+url); tab.page.wait_for_load_state("networkidle")
                    if name.startswith("list-") and (size!="desktop" or scheme!="light" or lang!="en"): continue
                    tab.page.screenshot(path=f"{OUT}/{name}-{lang}-{scheme}-{size}.png", full_page=True)
                    for line in violations(tab.page): found.setdefault(line.split("\n")[0][:260],[]).append(f"{name}-{lang}-{scheme}-{size}")
                if not ONLY or "read" in ONLY:
                    tab.page.goto(server.url+pages["thread"]); tab.page.locator(".console-read button").click(); tab.page.wait_for_selector(".console-text")
                    tab.page.screenshot(path=f"{OUT}/read-{lang}-{scheme}-{size}.png")
                    for line in violations(tab.page): found.setdefault(line.split("\n")[0][:260],[]).append(f"read-{lang}-{scheme}-{size}")
            for p in tab.problems: found.setdefault("PROBLEM "+p,[]).append("x")
            tab.problems.clear()
    with open("/tmp/shots/admin/violations.txt","w") as f:
        for line,places in sorted(found.items()): f.write(f"{len(places)} {line}   [{places[0]} ..]\n")
