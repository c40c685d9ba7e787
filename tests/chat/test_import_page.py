"""The import page: an upload, its progress, its report."""

import io
import json
import threading

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from playwright.sync_api import expect

from agent import import_jobs
from agent.models import ImportJob
from llm.emulator import client as emulated
from tests.agent import exports
from tests.browser import PHONE
from threads.models import Message, Thread

pytestmark = pytest.mark.django_db
BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture(autouse=True)
def data_folder(settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"


@pytest.fixture
def archive(tmp_path):
    """The bytes of an export of three conversations, one of which has a branch, and one damaged entry."""
    conversations = [*map(exports.chatgpt_conversation, range(3)), {"title": "Odd one"}]
    return exports.write_zip(tmp_path / "export.zip", conversations).read_bytes()


def stored_files():
    return sorted(path.name for path in import_jobs.folder().iterdir())


def upload(client, raw, name="my export.zip", **headers):
    return client.post("/import/", {"file": SimpleUploadedFile(name, raw)}, headers=headers)


def test_an_upload_becomes_an_import_and_then_a_report(client, alice, archive):
    client.force_login(alice, backend=BACKEND)
    answer = upload(client, archive)
    assert (answer.status_code, answer["Location"]) == (302, "/import/")
    job = ImportJob.objects.get()
    assert (job.owner, job.file_name, job.state) == (alice, "my export.zip", "waiting")
    [name] = stored_files()
    file = import_jobs.folder() / name
    assert file.read_bytes() == archive
    assert file.stat().st_mode & 0o777 == 0o600
    assert import_jobs.folder().stat().st_mode & 0o777 == 0o700
    assert "Waiting for its turn" in client.get("/import/").content.decode()
    import_jobs.run(job.pk)
    page = client.get("/import/").content.decode()
    assert "Imported." in page and "my export.zip" in page
    assert "conversations.json, entry 4 (“Odd one”)" in page
    assert "It is no conversation of ChatGPT or Claude" in page
    assert Thread.objects.filter(owner=alice, kind="web").count() == 4
    assert stored_files() == []


def test_the_page_asks_how_far_it_came(client, alice, archive):
    client.force_login(alice, backend=BACKEND)
    upload(client, archive)
    job = ImportJob.objects.get()
    address = f"/import/{job.pk}/"
    assert client.get(address).json()["open"] is True
    assert client.get(address).json()["sentence"] == "Waiting for its turn…"
    import_jobs.run(job.pk)
    state = client.get(address).json()
    assert (state["open"], state["percent"], state["sentence"]) == (False, 100, "Imported.")
    assert {"name": "New conversations", "count": 3} in state["figures"]
    assert {"name": "Branches", "count": 1} in state["figures"]
    assert {"name": "Left out", "count": 1} in state["figures"]


def test_a_script_gets_the_address_to_go_to_and_refusals_as_sentences(client, alice, archive):
    client.force_login(alice, backend=BACKEND)
    assert upload(client, archive, accept="application/json").json() == {"location": "/import/"}
    refused = upload(client, archive, accept="application/json")
    assert (refused.status_code, refused.json()["reason"]) == (
        409,
        "Another import of yours is not finished. Wait for it, or cancel it.",
    )
    assert len(stored_files()) == 1


@pytest.mark.parametrize("raw", [None, b""])
def test_a_form_without_a_file_is_refused_with_a_sentence(client, alice, raw):
    client.force_login(alice, backend=BACKEND)
    answer = client.post("/import/", {} if raw is None else {"file": SimpleUploadedFile("empty.zip", raw)})
    assert answer.status_code == 400
    assert "Choose a file first" in answer.content.decode()
    assert stored_files() == []


def test_a_file_over_the_limit_is_refused_and_removed(client, alice, settings, archive):
    client.force_login(alice, backend=BACKEND)
    settings.IMPORT_MAX_BYTES = 1_000_000
    answer = upload(client, b"x" * 1_000_001)
    assert answer.status_code == 413
    assert "larger than 0 MB" in answer.content.decode()
    settings.IMPORT_MAX_BYTES = 1024 * 1024
    answer = upload(client, b"x" * 3_000_000)
    assert answer.status_code == 413
    assert "larger than 1 MB" in answer.content.decode()
    assert not ImportJob.objects.exists()
    assert stored_files() == []


def test_a_full_disk_is_said_and_leaves_nothing(client, alice, archive, monkeypatch):
    class Full(io.BytesIO):
        def write(self, raw):
            raise OSError(28, "No space left on device")

    client.force_login(alice, backend=BACKEND)
    original = import_jobs.new_file

    def new_file():
        name, file = original()
        file.close()
        return name, Full()

    monkeypatch.setattr(import_jobs, "new_file", new_file)
    answer = upload(client, archive)
    assert "The server has no room for this file." in answer.content.decode()
    assert stored_files() == []


def test_a_post_from_another_site_is_refused_and_leaves_nothing(alice, archive):
    from django.test import Client

    client = Client(enforce_csrf_checks=True)
    client.force_login(alice, backend=BACKEND)
    assert upload(client, archive).status_code == 403
    assert stored_files() == [] and not ImportJob.objects.exists()
    token = client.get("/import/").cookies["csrftoken"].value
    answer = client.post("/import/", {"csrfmiddlewaretoken": token, "file": SimpleUploadedFile("e.zip", archive)})
    assert answer.status_code == 302


def test_nobody_sees_or_cancels_anothers_import(client, alice, bob, archive):
    client.force_login(alice, backend=BACKEND)
    upload(client, archive)
    job = ImportJob.objects.get()
    client.force_login(bob, backend=BACKEND)
    assert client.get(f"/import/{job.pk}/").status_code == 404
    assert client.post(f"/import/{job.pk}/cancel/").status_code == 404
    assert "my export" not in client.get("/import/").content.decode()
    job.refresh_from_db()
    assert job.state == "waiting"


def test_a_waiting_import_is_cancelled_at_once(client, alice, archive):
    client.force_login(alice, backend=BACKEND)
    upload(client, archive)
    job = ImportJob.objects.get()
    assert client.get(f"/import/{job.pk}/cancel/").status_code == 405
    client.post(f"/import/{job.pk}/cancel/")
    job.refresh_from_db()
    assert job.state == "cancelled" and stored_files() == []
    import_jobs.run(job.pk)
    assert not Thread.objects.filter(kind="web").exists()
    assert "Cancelled." in client.get("/import/").content.decode()


def test_the_page_speaks_chinese(client, alice, archive):
    alice.language = "zh-hans"
    alice.save()
    client.force_login(alice, backend=BACKEND)
    upload(client, archive)
    import_jobs.run(ImportJob.objects.get().pk)
    page = client.get("/import/").content.decode()
    assert "导入" in page
    assert "New conversations" not in page and "neither" not in page


def run_in_background(job):
    def work():
        try:
            import_jobs.run(job.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.browser
@pytest.mark.parametrize("size", ["desktop", "phone"])
@pytest.mark.django_db(transaction=True)
def test_upload_progress_and_result_in_the_browser(server, emulator, alice, open_tab, tmp_path, monkeypatch, size):
    monkeypatch.setattr(import_jobs, "SAVE_SECONDS", 0.0)
    go_on = threading.Event()
    from agent import import_run

    read = import_run._read

    def read_and_wait(conversation):
        if conversation.get("title") == "Talk 30":
            go_on.wait(60)
        return read(conversation)

    monkeypatch.setattr(import_run, "_read", read_and_wait)
    file = exports.write_json(
        tmp_path / "conversations.json", [*map(exports.chatgpt_conversation, range(60)), {"title": "Odd one"}]
    )
    tab = open_tab(server, alice, **(PHONE if size == "phone" else {}))
    page = tab.page
    page.goto(f"{server.url}/")
    if size == "phone":
        page.get_by_role("button", name="Show the conversations").click()
    page.locator("#user-menu summary").click()
    page.get_by_role("link", name="Import", exact=True).click()
    page.locator("#id_file").set_input_files(file)
    expect(page.locator("#chosen")).to_have_text("conversations.json")
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_text("Waiting for its turn…")).to_be_visible()
    work = run_in_background(ImportJob.objects.get())
    try:
        expect(page.get_by_text("Importing…")).to_be_visible()
        expect(page.locator("[data-part=figures]")).to_contain_text("30")
        assert 0 < float(page.locator("progress[data-part]").get_attribute("value")) < 100
    finally:
        go_on.set()
        work.join()
    expect(page.get_by_text("Imported.", exact=True)).to_be_visible()
    expect(page.locator(".figures")).to_contain_text("60")
    expect(page.get_by_text("entry 61 (“Odd one”)")).to_be_visible()
    page.get_by_role("link", name="To the conversations").last.click()
    if size == "phone":
        page.get_by_role("button", name="Show the conversations").click()
    page.get_by_role("link", name="Talk 56").click()
    card = page.locator(".tool-card")
    expect(card).to_contain_text("python")
    expect(page.get_by_text("Welcome 56")).to_be_visible()
    # What was imported is gone on with.
    emulator.answer(emulated.text("You asked a question then. " * 4), pace="10:20")
    page.locator("#words-box").fill("What did I ask then?")
    page.locator("#send").click()
    expect(page.locator(".prose.growing")).to_contain_text("You asked")
    expect(page.locator(".prose.growing")).to_have_count(0)
    expect(page.locator(".from-assistant").last).to_contain_text("You asked a question then.")
    assert "Question 56" in json.dumps(emulator.bodies()[-1]["messages"])


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_cancelling_in_the_browser_keeps_what_is_there(server, alice, open_tab, tmp_path, monkeypatch):
    monkeypatch.setattr(import_jobs, "SAVE_SECONDS", 0.0)
    go_on = threading.Event()
    from agent import import_run

    read = import_run._read

    def read_and_wait(conversation):
        if conversation.get("title") == "Talk 5":
            go_on.wait(60)
        return read(conversation)

    monkeypatch.setattr(import_run, "_read", read_and_wait)
    file = exports.write_json(tmp_path / "conversations.json", [*map(exports.chatgpt_conversation, range(20))])
    page = open_tab(server, alice).page
    page.goto(f"{server.url}/import/")
    page.locator("#id_file").set_input_files(file)
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Import", exact=True).press("Enter")
    expect(page.get_by_text("Waiting for its turn…")).to_be_visible()
    work = run_in_background(ImportJob.objects.get())
    try:
        expect(page.get_by_text("Importing…")).to_be_visible()
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_text("Stopping…")).to_be_visible()
    finally:
        go_on.set()
        work.join()
    expect(page.get_by_text("Cancelled. What was imported before stays.")).to_be_visible()
    titles = set(Thread.objects.filter(kind="web", copied_from__isnull=True).values_list("title", flat=True))
    assert titles >= {f"Talk {number}" for number in range(5)} and len(titles) <= 6
    for thread in Thread.objects.filter(kind="web", title__in=titles):
        assert Message.objects.filter(thread=thread, text__startswith="Welcome").exists()
    assert stored_files() == []

    page = open_tab(server, alice, **PHONE).page
    page.goto(f"{server.url}/import/")
    page.locator("#id_file").set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).tap()
    page.get_by_role("button", name="Cancel").tap()
    expect(page.get_by_text("Cancelled.")).to_have_count(2)
    assert stored_files() == []


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_without_a_script_the_form_works(server, alice, open_tab, tmp_path, archive):
    file = tmp_path / "export.zip"
    tab = open_tab(server, alice, java_script_enabled=False)
    page = tab.page
    page.goto(f"{server.url}/import/")
    page.locator("#id_file").set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_text("Waiting for its turn…")).to_be_visible()
    import_jobs.run(ImportJob.objects.get().pk)
    page.reload()
    expect(page.get_by_text("Imported.", exact=True)).to_be_visible()
