"""Which model answers: categories are a wall, health is an order."""

import pytest

from llm import catalog, router
from llm.errors import ErrorKind, ModelError
from llm.router import NoModelForCategory, candidates
from maxclaw import clock


def names(*arguments, **options):
    return [model.name for model in candidates(*arguments, **options)]


def failed(name, kind=ErrorKind.TRANSIENT, **fields):
    router.report(catalog.get(name), ModelError(kind, "x", **fields))


def test_a_palette_is_in_order():
    assert names("light", "") == ["emulator-light", "emulator-light-all"]


def test_a_labelled_conversation_reaches_only_models_tagged_with_the_label():
    assert names("light", "work") == ["emulator-light-all"]
    assert names("light", "work", "emulator-light") == ["emulator-light-all"]


def test_no_model_for_a_category_is_a_sentence(settings, tmp_path):
    settings.ANTHROPIC_BASE_URL = "http://127.0.0.1:1"
    settings.MAXCLAW_MODEL = "local"
    with pytest.raises(NoModelForCategory, match="labelled work"):
        candidates("main", "work")
    assert names("main", "") == names("light", "") == ["local"]


def test_the_preferred_model_comes_first_from_wherever_it_stands():
    assert names("light", "", "emulator-light-all") == ["emulator-light-all", "emulator-light"]
    assert names("light", "", "emulator-main") == ["emulator-main", "emulator-light", "emulator-light-all"]
    assert names("light", "", "no-such-model") == ["emulator-light", "emulator-light-all"]


def test_a_model_that_was_given_up_comes_last_rather_than_never():
    failed("emulator-light")
    assert names("light", "") == ["emulator-light-all", "emulator-light"]
    failed("emulator-light-all")
    assert names("light", "") == ["emulator-light", "emulator-light-all"]


def test_a_resting_model_never_lets_a_label_through():
    failed("emulator-light-all")
    assert names("light", "work") == ["emulator-light-all"]


def test_a_rest_ends_on_the_clock_and_grows_with_each_failure():
    failed("emulator-light")
    with clock.moved(router.FIRST_REST_SECONDS + 1):
        assert names("light", "")[0] == "emulator-light"
        failed("emulator-light")
        with clock.moved(router.FIRST_REST_SECONDS + 1):
            assert names("light", "")[0] == "emulator-light-all"
            with clock.moved(router.FIRST_REST_SECONDS):
                assert names("light", "")[0] == "emulator-light"


def test_a_rest_is_never_longer_than_the_longest():
    for _failure in range(50):
        failed("emulator-light", retry_after=100_000)
    with clock.moved(router.LONGEST_REST_SECONDS + 1):
        assert names("light", "")[0] == "emulator-light"


def test_an_answer_makes_a_model_healthy():
    failed("emulator-light")
    router.report(catalog.get("emulator-light"), None)
    assert names("light", "")[0] == "emulator-light"


@pytest.mark.parametrize("kind", [ErrorKind.CONTEXT_FULL, ErrorKind.OUTPUT_CAP, ErrorKind.UNKNOWN])
def test_what_lies_in_the_request_does_not_count_against_the_model(kind):
    failed("emulator-light", kind)
    assert names("light", "")[0] == "emulator-light"


def test_a_model_that_its_server_does_not_know_rests():
    failed("emulator-light", ErrorKind.UNKNOWN, rule="model_not_found")
    assert names("light", "")[0] == "emulator-light-all"
