"""The same loop over HTTP, against the scripted model's server on loopback."""

from __future__ import annotations

import threading

import pytest
from bookshop.agent import make, model_from_environment
from bookshop.model import EndpointError, HttpModel, ScriptedModel, chat_over_http
from bookshop.server import ModelServer
from bookshop.tasks import TASKS


@pytest.fixture(scope="module")
def server():
    """A server on a free port."""
    with ModelServer(seed=1) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("one", TASKS, ids=lambda one: one.id)
def test_the_loop_runs_unchanged_over_http(server, monkeypatch, one):
    """With nothing but the environment changed, every task ends in the same answer and the same shop."""
    here, there = one.shop(), one.shop()
    local = make(shop=here, seed=5)(list(one.messages))
    monkeypatch.setenv("BOOKSHOP_BASE_URL", server.base_url)
    monkeypatch.setenv("BOOKSHOP_API_KEY", "none")

    remote = make(shop=there, seed=5)(list(one.messages))

    assert (remote, there.snapshot()) == (local, here.snapshot())


def test_the_servers_seed_is_used_without_one_in_the_request(server):
    """A client that sends no seed gets the server's."""
    messages = [{"role": "user", "content": "Hello"}]

    assert chat_over_http(server.base_url, "scripted-1")(messages, [], "") == ScriptedModel(1)(
        messages, [], "scripted-1"
    )


def test_the_environment_names_the_endpoint(monkeypatch):
    """``BOOKSHOP_BASE_URL``, ``BOOKSHOP_MODEL`` and ``BOOKSHOP_API_KEY`` make an HTTP model."""
    monkeypatch.setenv("BOOKSHOP_BASE_URL", "https://api.example.com/v1")
    monkeypatch.setenv("BOOKSHOP_MODEL", "some-model")
    monkeypatch.setenv("BOOKSHOP_API_KEY", "k")

    assert model_from_environment(3) == HttpModel("https://api.example.com/v1", "some-model", "k", 3)


def test_a_refusal_is_told_with_the_endpoints_words(server):
    """The body of an error answer is part of the message."""
    model = chat_over_http(server.base_url, "scripted-1")

    with pytest.raises(EndpointError, match=r"answered 400: .*not a chat completion request"):
        model([{"no": "role"}], [], "")
    with pytest.raises(EndpointError, match="answered 404"):
        chat_over_http(f"{server.base_url}/elsewhere", "scripted-1")([], [], "")


def test_an_endpoint_that_is_not_there_is_named():
    """A closed port gives a sentence, not a traceback of sockets."""
    with ModelServer() as gone:
        url = gone.base_url

    with pytest.raises(EndpointError, match="cannot be reached"):
        chat_over_http(url, "scripted-1")([], [], "")


def test_only_http_urls_are_taken():
    """A file is no endpoint."""
    with pytest.raises(ValueError, match="must begin with http"):
        chat_over_http("file:///etc/hosts", "m")
