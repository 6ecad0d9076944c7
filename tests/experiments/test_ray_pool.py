"""A cluster of two nodes on this machine gives what local processes give, also when it loses a node."""

from pathlib import Path

import pytest

from skipper.experiments.define import COMMON, Evaluation, Training
from skipper.experiments.execute import execute, read_history
from skipper.experiments.pool import LocalPool
from skipper.training.run import Stop

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("default")  # of a library that is not ours


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
WORKS = [SHORT, LONG, Evaluation(SHORT, episodes=6), Evaluation(LONG, episodes=6, curve=2)]


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
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.mark.parametrize("shared", [False, True], ids=["files travel", "shared folder"])
def test_a_lost_node_costs_nothing_but_time(shared, cluster, local, tmp_path):
    from skipper.experiments.ray_pool import RayPool

    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()

    class LosingPool(RayPool):
        """Removes the second node once the long training has saved a checkpoint, and the short one has ended."""

        removed = False

        def poll(self, seconds: float):
            saved = any(LONG.folder(tmp_path).glob("checkpoints/step-*"))
            if saved and SHORT.finished(tmp_path) and not LONG.finished(tmp_path) and not self.removed:
                self.removed = True
                lost = [node_of[work.name] for work in self._actors if work is LONG]
                assert lost
                cluster.remove_node(node, allow_graceful=False)
            found = super().poll(seconds)
            node_of.update({status.work.name: status.node for status in found})
            return found

        def start(self, work, avoid: str) -> None:
            # The long training runs on the node that will be lost.
            super().start(work, avoid or (self._head() if work is LONG else ""))

        def _head(self) -> str:
            return next(each["NodeID"] for each in ray.nodes() if each["NodeID"] == cluster.head_node.node_id)

    node_of: dict[str, str] = {}
    pool = LosingPool(tmp_path, cluster.address, shared=shared)
    runs = execute(WORKS, tmp_path, pool, Silent(), Stop())
    assert pool.removed
    assert [run.state for run in runs] == ["finished"] * len(WORKS)
    assert contents(tmp_path) == local
    tries = [entry["run"] for entry in read_history(tmp_path)]
    assert tries.count(SHORT.name) == 1  # what was finished is not made again
    assert tries.count(LONG.name) == 2
    pool.close()
