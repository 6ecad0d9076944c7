"""A run that is killed again and again leaves the same bytes as one that nobody interrupted."""

import resource
import signal
import subprocess
import time

import pytest

from skipper.agents.registry import KINDS
from tests.soak.fork_server import ForkServer
from tests.soak.kills import COMPARED, PROGRAM, SETTINGS, KillTest, differing_bytes, newest_step, warm_up_commands

# Kills for each setting; every fourth hits a run while it starts. ``make soak`` kills more, with all settings.
KILLS = {
    "skipper-regen, fast, updater process": 6,
    "skipper-once": 8,
    "skipper-regen, revisit penalty": 8,
    "director": 6,
    "modelfree": 20,
    "modelfree, windows": 8,
}
MODELFREE = SETTINGS["modelfree"]


@pytest.fixture(scope="module")
def server():
    server = ForkServer(warm_up_commands(SETTINGS[name] for name in KILLS))
    yield server
    server.close()


def run(*arguments, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False, **more)


@pytest.mark.parametrize("name", KILLS)
def test_kills_at_random_moments_change_nothing(name, server, tmp_path):
    test = KillTest(SETTINGS[name], server, tmp_path, seed=0)
    test.run(KILLS[name])
    assert test.kills == KILLS[name]
    assert test.differing == 0


def test_differing_bytes_are_counted(tmp_path):
    for folder, content in (("one", b"same but longer"), ("two", b"some but long")):
        (tmp_path / folder).mkdir()
        for name in COMPARED:
            (tmp_path / folder / name).write_bytes(content)
    assert differing_bytes(tmp_path / "one", tmp_path / "two") == len(COMPARED) * (1 + 2)


def test_every_agent_is_killed_in_the_soak_test():
    killed = {setting.options[setting.options.index("--agent") + 1] for setting in SETTINGS.values()}
    assert killed == {name for name, kind in KINDS.items() if kind.preset.__module__.startswith("skipper.")}


def test_a_second_process_and_another_configuration_are_refused_in_one_line(server, tmp_path):
    command = MODELFREE._replace(steps=1_000_000).command(tmp_path)  # it must not end before the second one starts
    first = server.start(*command)
    while newest_step(tmp_path) < 0:
        assert first.poll() is None
        time.sleep(0.01)
    second = run(*command)
    first.send_signal(signal.SIGTERM)
    assert first.wait() == 0
    third = run(*command, "--seed", "7")
    for refused, wanted in ((second, "in use by another process"), (third, "seed: 0 -> 7")):
        assert refused.returncode == 1
        assert wanted in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_refused_in_one_line():
    refused = run(*MODELFREE.command("/proc/nowhere"))
    assert refused.returncode == 1
    assert refused.stderr.startswith("skipper: error:")
    assert refused.stderr.count("\n") == 1


def test_a_full_disk_ends_the_run_with_one_line_and_spares_the_last_checkpoint(server, tmp_path):
    """Files may not grow beyond a limit that is enough for the first checkpoints, but not for later ones."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (230_000, 230_000))

    command = MODELFREE.command(tmp_path)
    ended = run(*command, preexec_fn=limit)
    assert ended.returncode == 1
    assert ended.stderr.startswith("skipper: error:")
    assert ended.stderr.count("\n") == 1
    assert newest_step(tmp_path) >= 0
    assert not list(tmp_path.glob("checkpoints/.*"))
    assert server.start(*command).wait() == 0
