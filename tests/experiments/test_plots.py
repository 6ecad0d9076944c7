from matplotlib.image import imread

from skipper.config import WorldConfig
from skipper.envs.tasks import tasks_from_text
from skipper.experiments.plots import draw_tasks


def test_a_picture_of_every_set(tmp_path):
    sets = {name: tasks_from_text("A.G\n.#.\n...", world=WorldConfig()) for name in ("easy", "hard", "harder")}
    draw_tasks(sets, tmp_path / "tasks.png")
    image = imread(tmp_path / "tasks.png")
    height, width, _ = image.shape
    assert width > 2 * height
    orange = (image[..., 0] > 0.9) & (abs(image[..., 1] - 0.5) < 0.05) & (image[..., 2] < 0.1)
    for part in range(3):  # each panel shows its lava
        assert orange[:, part * width // 3 : (part + 1) * width // 3].any()
