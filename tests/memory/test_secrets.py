"""Secrets are recognised by their shapes and by being this server's own; ordinary words pass."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.secrets import kinds_in, luhn_holds, redact

SECRETS = {
    "API key": [
        "sk-ant-api03-abcdefghijklmnop1",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "api key: 8f3kd93kfa93",
        "https://example.org/a?token=abcdef123",
    ],
    "bearer token": [
        "Bearer abcdef1234",
        "Authorization: Bearer abc.def-123456789",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0.abc",
    ],
    "private key": ["-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"],
    "password in a URL": [
        "postgres://me:hunter22@host/db",
        "redis://:s3cret@host:6379",
        "root:hunter2@tcp(127.0.0.1:3306)/orders",
    ],
    "password": [
        "host=db user=me password=hunter2",
        "Server=x;User Id=z;Password=abc;",
        "我的密码是 abc12345",
        '{"password": "hunter22"}',
        "'PASSWORD': 'correct horse'",
        "DB_PASSWORD=hunter22",
        "PGPASSWORD=hunter22 psql",
        "db_password: hunter22",
    ],
    "webhook URL": [
        "https://hooks.slack.com/services/T000/B000/k3J9s",
        "https://discord.com/api/webhooks/123/abc",
        "https://open.feishu.cn/open-apis/bot/v2/hook/abc-def",
    ],
    "cookie": ["Cookie: sessionid=abc; csrftoken=def", "Set-Cookie: sid=x1; Path=/", "sessionid=8f7s9d8f7s9df"],
    "card number": ["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005", "卡号4111111111111111，谢谢"],
}


@pytest.mark.parametrize(("kind", "words"), [(kind, words) for kind, all_ in SECRETS.items() for words in all_])
def test_each_shape_is_recognised_and_redacted(kind, words):
    assert kind in kinds_in(f"Mine is {words}", {})
    shown = redact(f"Mine is {words}", {})
    assert "[redacted]" in shown
    assert shown.startswith(("Mine is", "Mine"))
    assert kinds_in(shown, {}) == []


@pytest.mark.parametrize(
    "words",
    [
        "Knows basic English, and the bearer of good news.",
        "The password is stored in the vault, the API key is in the drawer.",
        "Order 1234567890123, ISBN 9783161484100, commit 4111111111111112aa.",
        "Prefers cookies: chocolate and vanilla.",
        "Phone +49 170 1234567890, 1700000000000 ms, 2023 2024 2025 2026.",
        "See https://example.org/docs/hooks/use-state and sk-learn.",
        "Meets at 10:30 with a:b@c.",
        "password: please reset it, the token bucket is full and my key is under the mat.",
        "http://localhost:8000/a@b, the token is short-lived, docker run -u 1000:1000, password: string",
        'showPassword=true, "password": "string", {"password": null}, user_password: required',
        "The secret is that everybody knows, 1.2.3.4 and 2023.2024.2025.2026.",
    ],
)
def test_ordinary_words_pass(words):
    assert kinds_in(words, {}) == []
    assert redact(words, {}) == words


def test_values_of_secret_variables_are_recognised_and_short_ones_are_not():
    variables = {"OPENAI_API_KEY": "quitesecret", "DB_PASSWORD": "x", "TOKEN": "seven77", "HOME": "/home/alice"}
    words = "x marks the spot: quitesecret, seven77 in /home/alice, quitesecretly"
    assert redact(words, variables) == "x marks the spot: [redacted], seven77 in /home/alice, [redacted]ly"
    assert kinds_in("xylophone", variables) == []


def test_the_variables_are_this_servers_own(monkeypatch):
    before = dict(os.environ)
    with monkeypatch.context() as patched:
        patched.setenv("MAXCLAW_SOME_TOKEN", "a value of ours")
        assert redact("It is a value of ours.") == "It is [redacted]."
    assert dict(os.environ) == before
    assert redact("It is a value of ours.") == "It is a value of ours."


HEX = "8f3a9c0d1b2e4f5a6b7c8d9e0f1a2b3c"


@pytest.mark.parametrize(
    ("words", "secret"),
    [
        (f"my token is {HEX}", HEX),
        (f"token = {HEX}, and more", HEX),
        (f"SECRET={HEX}", HEX),
        ("password: swordfish", "swordfish"),
        ("sk_live_abcdefghijklmnopqr", "abcdefghijklmnopqr"),
        ("whsec_abcdefghijklmnopqr", "abcdefghijklmnopqr"),
        ("Bearer abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz"),
        ("curl -u admin:S3cretPw9 https://example.org", "S3cretPw9"),
        ("4111.1111.1111.1111", "1111"),
        ("4111  1111  1111  1111", "1111"),
        ("４１１１１１１１１１１１１１１１", "１１１１"),
        (f"https://{HEX}@errors.example.org/4", HEX),
        ("postgres://u:p@ss/word@host/db", "ss/word"),
        ("postgres://u:hunter22@host/db", "hunter22"),
    ],
)
def test_nothing_of_the_secret_itself_is_left(words, secret):
    shown = redact(f"Mine is {words}", {})
    assert secret not in shown
    assert "[redacted]" in shown
    assert redact(shown, {}) == shown


@given(st.text(), st.dictionaries(st.sampled_from(["A_KEY", "TOKEN"]), st.text(max_size=7)))
def test_redacting_twice_changes_nothing_and_short_values_never_matter(words, variables):
    once = redact(words, variables)
    assert once == redact(words, {})
    assert redact(once, variables) == once


def test_the_check_digit_of_cards():
    assert luhn_holds("4111111111111111")
    assert not luhn_holds("4111111111111112")
