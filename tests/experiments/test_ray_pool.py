"""A cluster of two nodes on this machine gives what local processes give, also when it loses a node."""

from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster

from skipper.experiments.execute import execute, read_history
from skipper.experiments.pool import LocalPool, Status
from skipper.experiments.ray_pool import RayPool
from skipper.experiments.works import COMMON, Evaluation, Training
from skipper.training.run import Stop


class Silent:
    def say(self, text: str) -> None:
        pass

    def show(self, runs) -> None:
        pass


def training(seed: int, steps: int) -> Training:
    settings = {"tasks": 2, "steps": steps, "checkpoint_every": 200, **COMMON}
    return Training("modelfree", "debug", seed, tuple(settings.items()))


# A short training that ends before its node is lost, and a long one that is lost with it.
SHORT, LONG = training(33, 200), training(34, 4_000)
WORKS = [SHORT, LONG, Evaluation(LONG, episodes=6, curve=2)]


def contents(root: Path) -> dict[str, bytes]:
    files = [*root.glob("evaluations/*/*.json"), *root.glob("runs/*/evaluations.jsonl")]
    files += root.glob("runs/*/weights.safetensors")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> dict[str, bytes]:
    root = tmp_path_factory.mktemp("local")
    execute(WORKS, root, LocalPool(root, cores=2), Silent(), Stop())
    return contents(root)


@pytest.fixture(scope="module")
def cluster():
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield made
    ray.shutdown()
    made.shutdown()


class LosingPool(RayPool):
    """Begins on the second node, which is lost once the short training has ended and the long one has been saved."""

    def __init__(self, root: Path, cluster: Cluster, shared: bool) -> None:
        self._cluster, self._second = cluster, cluster.add_node(num_cpus=2)
        cluster.wait_for_nodes()
        super().__init__(root, cluster.address, shared)
        self.lost, self.made_there = False, set()

    def start(self, work, avoid: str) -> None:
        super().start(work, avoid or ("" if self.lost else self._cluster.head_node.node_id))

    def poll(self, seconds: float) -> list[Status]:
        saved = any(LONG.folder(self._root).glob("checkpoints/step-*"))
        if saved and SHORT.finished(self._root) and not LONG.finished(self._root) and not self.lost:
            self.lost = True
            self._cluster.remove_node(self._second, allow_graceful=False)
        found = super().poll(seconds)
        self.made_there |= {each.work.name for each in found if each.node == self._second.node_id}
        return found


@pytest.mark.parametrize("shared", [False, True], ids=["files travel", "shared folder"])
def test_a_lost_node_costs_nothing_but_time(shared, cluster, local, tmp_path):
    pool = LosingPool(tmp_path, cluster, shared)
    try:
        runs = execute(WORKS, tmp_path, pool, Silent(), Stop())
    finally:
        pool.close()
    assert pool.lost
    assert pool.made_there >= {SHORT.name, LONG.name}
    assert [run.state for run in runs] == ["finished"] * len(WORKS)
    assert contents(tmp_path) == local
    tries = [entry["run"] for entry in read_history(tmp_path)]
    assert tries.count(SHORT.name) == 1  # what the lost node had finished is not made again
    assert tries.count(LONG.name) >= 2
    assert not list(tmp_path.glob(".shared-*"))
