"""Embedding backends: the local model and its thresholds, and a server over HTTP."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from llm import embedding
from llm.embedding import EmbeddingError, Thresholds
from llm.embedding_http import BATCH_TEXTS, HttpBackend
from llm.embedding_local import NAME, THRESHOLDS, LocalBackend
from llm.error_table import ErrorKind
from maxclaw.settings import BASE_DIR

PAIRS = [
    ("Where do you live?", "My home is in Berlin.", 0.24),
    ("I like painting.", "我喜欢画画。", 0.78),
    ("The build failed.", "She plays the violin.", 0.06),
]


@pytest.fixture(scope="module")
def local():
    return LocalBackend()


def test_the_local_model_gives_vectors_of_length_one(local):
    vectors = local.embed(["a text", "ein Text", "", "x" * 1_000])
    assert vectors.shape == (4, 512) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    assert local.embed([]).shape == (0, 512)


def test_one_text_has_the_same_vector_alone_and_in_a_batch(local):
    alone, together = local.embed(["a text"])[0], local.embed(["something else", "a text"])[1]
    assert np.allclose(alone, together, atol=1e-3)


def test_the_local_model_is_the_one_that_its_thresholds_were_calibrated_for(local):
    """Another model has other cosines. Whoever changes it calibrates thresholds anew, under a new name."""
    found = [round(float(a @ b), 2) for a, b in (local.embed(list(pair[:2])) for pair in PAIRS)]
    assert found == pytest.approx([pair[2] for pair in PAIRS], abs=0.02)
    assert list(THRESHOLDS) == [local.name] == ["universal-sentence-encoder-multilingual-3"]
    assert local.thresholds == Thresholds(recall=0.541, briefing=0.349)


def test_a_model_without_thresholds_has_none_to_fall_back_to(local, monkeypatch):
    monkeypatch.setattr(LocalBackend, "name", "another")
    with pytest.raises(KeyError):
        assert local.thresholds


def test_the_default_is_local_and_one_copy_a_process():
    assert embedding.configured() is embedding.configured()
    assert embedding.configured().name == NAME


class Server:
    """A small embedding server. `answers` are statuses with bodies to give before it answers properly."""

    def __init__(self):
        self.answers, self.requests = [], []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append((self.path, self.headers.get("authorization"), body))
                status, headers, said = outer.answers.pop(0) if outer.answers else (200, {}, outer.proper(body))
                raw = said.encode() if isinstance(said, str) else json.dumps(said).encode()
                self.send_response(status)
                for name, value in {"content-length": str(len(raw)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def proper(body):
        data = [{"index": place, "embedding": [float(len(text)), 2.0, 0.0]} for place, text in enumerate(body["input"])]
        return {"data": data[::-1], "model": body["model"]}


@pytest.fixture
def server(settings):
    settings.MODEL_RETRY_BASE_SECONDS = 0.01
    server = Server()
    yield server
    server.server.shutdown()
    server.server.server_close()


def backend_of(server, key="sk-secret-key"):
    return HttpBackend(server.url, "embed-small", key, Thresholds(0.6, 0.4))


def test_a_server_is_asked_in_batches_and_its_order_is_put_right(server):
    texts = ["x" * (place + 1) for place in range(BATCH_TEXTS + 6)]
    vectors = backend_of(server).embed(texts)
    assert [len(body["input"]) for _path, _key, body in server.requests] == [BATCH_TEXTS, 6]
    assert {(path, key) for path, key, _body in server.requests} == {("/v1/embeddings", "Bearer sk-secret-key")}
    assert np.allclose(vectors[:, 0] / vectors[:, 1] * 2, [len(text) for text in texts])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_an_empty_text_is_sent_as_a_space(server):
    backend_of(server, key="").embed(["", "a"])
    _path, key, body = server.requests[0]
    assert (key, body) == (None, {"model": "embed-small", "input": [" ", "a"]})


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_an_error_that_passes_is_tried_again(server, status):
    server.answers = [(status, {"retry-after": "0"}, {"error": {"message": "overloaded"}})] * 2
    assert backend_of(server).embed(["a"]).shape == (1, 3)
    assert len(server.requests) == 3


def test_an_error_that_stays_is_transient_after_all_attempts(server):
    server.answers = [(503, {}, "upstream gone")] * 9
    with pytest.raises(EmbeddingError, match="503: upstream gone") as raised:
        backend_of(server).embed(["a"])
    assert raised.value.kind is ErrorKind.TRANSIENT
    assert len(server.requests) == 3


def test_a_refused_key_is_said_and_never_shown(server):
    server.answers = [(401, {}, {"error": {"message": "Incorrect API key provided: sk-secret-key"}})]
    with pytest.raises(EmbeddingError, match="MAXCLAW_EMBEDDING_API_KEY") as raised:
        backend_of(server).embed(["a"])
    assert raised.value.kind is ErrorKind.CREDENTIAL
    assert "sk-secret" not in str(raised.value)
    assert len(server.requests) == 1


def test_another_refusal_shows_no_key_either(server):
    server.answers = [(400, {}, "bad request for key sk-secret-key")]
    with pytest.raises(EmbeddingError, match="400: bad request") as raised:
        backend_of(server).embed(["a"])
    assert raised.value.kind is ErrorKind.UNKNOWN
    assert "sk-secret" not in str(raised.value)


@pytest.mark.parametrize(
    "said",
    [
        "no json",
        {"data": []},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [float("nan")]}]},
        [1, 2],
    ],
)
def test_what_is_no_list_of_vectors_is_refused(server, said):
    server.answers = [(200, {}, said)]
    with pytest.raises(EmbeddingError) as raised:
        backend_of(server).embed(["a"])
    assert raised.value.kind is ErrorKind.UNKNOWN


def test_a_server_that_is_not_there_is_transient_and_names_the_variable(settings):
    settings.MODEL_RETRY_BASE_SECONDS = 0.01
    backend = HttpBackend("http://127.0.0.1:9", "embed-small", "", Thresholds(0.6, 0.4))
    with pytest.raises(EmbeddingError, match="MAXCLAW_EMBEDDING_URL") as raised:
        backend.embed(["a"])
    assert raised.value.kind is ErrorKind.TRANSIENT


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/embeddings"])
def test_an_address_may_have_any_usual_end(path):
    assert HttpBackend(f"http://host{path}", "m", "", Thresholds(0, 0)).url == "http://host/v1/embeddings"


def test_the_configured_server_is_used_and_the_local_model_still_answers_for_its_vectors(server, settings):
    settings.EMBEDDING_URL, settings.EMBEDDING_MODEL = server.url, "embed-small"
    settings.EMBEDDING_RECALL_THRESHOLD, settings.EMBEDDING_BRIEFING_THRESHOLD = 0.6, 0.4
    assert embedding.configured().name == "embed-small"
    assert embedding.configured().thresholds == Thresholds(0.6, 0.4)
    assert embedding.able_to_embed(NAME).name == NAME
    assert embedding.able_to_embed("embed-large").name == "embed-large"


def test_vectors_of_a_server_that_is_gone_have_nobody_to_answer():
    assert embedding.able_to_embed("embed-small") is None


@pytest.mark.parametrize("missing", ["MODEL", "RECALL_THRESHOLD", "BRIEFING_THRESHOLD"])
def test_a_server_without_its_thresholds_is_an_error_at_start_that_names_the_variable(missing):
    given = {"URL": "http://host", "MODEL": "embed-small", "RECALL_THRESHOLD": "0.6", "BRIEFING_THRESHOLD": "0.4"}
    del given[missing]
    variables = os.environ | {f"MAXCLAW_EMBEDDING_{name}": value for name, value in given.items()}
    started = subprocess.run(
        [sys.executable, "-c", "import maxclaw.settings"], cwd=BASE_DIR, env=variables, capture_output=True, text=True
    )
    assert started.returncode == 2
    assert started.stderr.startswith(f"maxclaw: MAXCLAW_EMBEDDING_{missing} must be set")
