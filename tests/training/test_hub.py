"""Sharing: the real library of the hub, against a stand-in of its server."""

import importlib
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import yaml
from fake_hub import TOKEN, fake_hub

import skipper
from skipper.cli import main
from skipper.training.card import model_card
from skipper.training.hub import pull, push
from skipper.training.load import load
from skipper.training.pretrained import find_run
from skipper.training.run import train
from skipper.training.run_folder import weights_identity
from skipper.training.settings import configure

RUN = find_run("modelfree-50")


def use_hub(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As HF_ENDPOINT does when the library is imported."""
    constants = importlib.import_module("huggingface_hub.constants")
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", address)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub with nothing on it, a user who is logged in, and an empty cache."""
    with fake_hub() as server:
        use_hub(server.address, monkeypatch)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        yield server


def command(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["skipper", *arguments])
    main()


def test_what_is_pushed_can_be_loaded_and_played(hub, monkeypatch, capsys):
    command("push", "modelfree-50", "me/mf", monkeypatch=monkeypatch)
    printed = capsys.readouterr().out
    assert f"pushed to {hub.address}/me/mf" in printed
    assert 'skipper.load("hf:me/mf")' in printed
    assert set(hub.models["me/mf"]) == {"config.json", "weights.safetensors", "README.md"}
    hub.models["me/mf"]["agent.pkl"] = b"nobody reads this"
    there, here = skipper.load("hf:me/mf"), load(RUN)
    assert there.config == here.config
    assert weights_identity(pull("me/mf")) == weights_identity(RUN)
    assert sorted(hub.downloads) == ["README.md", "config.json", "weights.safetensors"]  # once, and nothing else
    options = ("--episodes", "4", "--difficulties", "0.35", "--json")
    command("evaluate", "hf:me/mf", *options, monkeypatch=monkeypatch)
    played = json.loads(capsys.readouterr().out)
    command("evaluate", "modelfree-50", *options, monkeypatch=monkeypatch)
    assert played == json.loads(capsys.readouterr().out)


def test_a_card_is_one_that_the_hub_understands(hub, tmp_path):
    config = replace(configure("debug", "modelfree"), steps=500)
    train(config, tmp_path / "run", None)
    push(tmp_path / "run", "me/first")
    push(tmp_path / "run", "me/first")  # again, into the same
    _, front, body = hub.models["me/first"]["README.md"].decode().split("---\n", 2)
    facts = yaml.safe_load(front)
    assert facts["library_name"] == "skipper-rl"
    assert "modelfree" in facts["tags"]
    metrics = facts["model-index"][0]["results"][0]["metrics"]
    assert all(0.0 <= metric["value"] <= 1.0 for metric in metrics)
    assert "| training | 500 of 500 environment steps, seed 0 |" in body
    assert 'skipper.load("hf:me/first")' in body


def test_a_card_of_the_folder_is_kept():
    card = model_card(RUN, "me/mf")
    assert (RUN / "README.md").read_text().rstrip() in card
    assert yaml.safe_load(card.split("---\n")[1])["pipeline_tag"] == "reinforcement-learning"


def test_an_agent_of_an_earlier_commit_is_found(hub):
    push(RUN, "me/mf")
    folder = pull("me/mf")
    assert pull(f"me/mf@{folder.name}") == folder
    with pytest.raises(ValueError, match="me/mf@other: there is no such revision"):
        pull("me/mf@other")


def test_what_is_in_the_cache_needs_no_hub(hub, monkeypatch):
    push(RUN, "me/mf")
    folder = pull("me/mf")
    use_hub("http://127.0.0.1:9", monkeypatch)  # nobody listens there
    assert pull("me/mf") == folder
    with pytest.raises(ValueError, match=r"^hf:me/other is not in the cache, and the hub cannot be reached$"):
        skipper.load("hf:me/other")
    with pytest.raises(ValueError, match=r"^hf:me/other: the hub cannot be reached \(ConnectError\)$"):
        push(RUN, "me/other")


def test_mistakes_are_one_line(hub, monkeypatch, tmp_path):
    with pytest.raises(ValueError, match=r"^hf:me/nothing: there is no such model, or it needs a login"):
        pull("me/nothing")
    with pytest.raises(ValueError, match=r"^hf:a/b/c: wanted USER/NAME"):
        pull("a/b/c")
    hub.models["me/other"] = {"README.md": b"# Something else"}
    with pytest.raises(ValueError, match=r"holds no agent of this package: it has no config\.json and no weights"):
        pull("me/other")
    hub.models["me/damaged"] = {"config.json": b"{}", "weights.safetensors": b"x"}
    with pytest.raises(SystemExit, match="is no configuration") as stopped:
        command("evaluate", "hf:me/damaged", monkeypatch=monkeypatch)
    assert "\n" not in str(stopped.value)
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(ValueError, match="log in") as refused:
        push(RUN, "me/mf")
    assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match="is not a run folder"):
        push(tmp_path, "me/mf")


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ValueError, match=r"pip install 'skipper-rl\[hub\]'"):
        skipper.load("hf:me/mf")


def test_a_loaded_agent_acts(hub):
    push(RUN, "me/mf")
    agent = skipper.load("hf:me/mf")
    assert agent.act(np.zeros((2, 12, 12, 2), np.uint8), goal=np.zeros((2, 12, 12, 2), np.uint8)).shape == (2,)
