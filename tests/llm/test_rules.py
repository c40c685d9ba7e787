"""What the database refuses of model calls, driven with raw SQL."""

import pytest
from django.db import IntegrityError, connection, transaction

from llm import catalog, ledger
from llm.models import ModelCall
from llm.prices import Usage
from tests.llm.requests import opened

pytestmark = pytest.mark.django_db

FROZEN = {
    "input_tokens": "1",
    "output_tokens": "1",
    "cache_read_tokens": "1",
    "cache_write_5m_tokens": "1",
    "cache_write_1h_tokens": "1",
    "prices": "'{}'",
    "cost": "1",
    "outcome": "''",
}


@pytest.fixture
def call():
    call, _body = opened(catalog.get("claude-opus-5-5"))
    return call


def update(call, assignment):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE llm_modelcall SET {assignment} WHERE id = %s", [call.pk])


@pytest.mark.parametrize("column", FROZEN)
def test_figures_of_a_finished_call_never_change(call, column):
    ledger.close_call(call, outcome="complete", usage=Usage(10, 20, 30, 40, 50))
    with pytest.raises(IntegrityError) as refused:
        update(call, f"{column} = {FROZEN[column]}")
    diagnosis = getattr(refused.value.__cause__, "diag", None)
    assert getattr(diagnosis, "constraint_name", None) == "modelcall_figures_frozen"


def test_figures_of_a_finished_call_never_change_through_the_orm_either(call):
    ledger.close_call(call, outcome="complete", usage=Usage(10, 20))
    with pytest.raises(IntegrityError), transaction.atomic():
        ModelCall.objects.filter(pk=call.pk).update(input_tokens=1)
    call.output_tokens = 1
    with pytest.raises(IntegrityError), transaction.atomic():
        call.save()


def test_figures_of_an_open_call_may_be_written(call):
    update(call, "input_tokens = 5, prices = '{}', outcome = 'complete'")


def test_erasure_may_take_ids_and_error_text_off_a_finished_call(call, alice):
    ledger.close_call(call, outcome="transient", usage=Usage(10, 20))
    update(call, "owner_id = NULL, thread_id = NULL, generation_id = NULL, error = '', answer_message_id = NULL")
