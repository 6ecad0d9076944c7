"""The page in a browser: it loads, plays, and shows the exported data."""

import time
from pathlib import Path

import numpy as np
import pytest
from fake_plans import FORECAST, PICTURE, ChainAgent, PictureAgent
from playwright.sync_api import Browser, Page

from skipper.agents.registry import make_baseline
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import LAVA
from skipper.envs.lava.tasks import Tasks, evaluation_tasks
from skipper.training.load import load
from skipper.types import Agent
from skipper.viewer.record import page_data, record, to_html

PRETRAINED = Path(__file__).parents[2] / "skipper" / "pretrained"
HOSTILE = "<img src=x onerror=window.hacked=1></script><script>window.hacked=1</script>"


def data_of(name: str, count: int, variant: str | None = None, replan: str | None = None, **world: float) -> dict:
    tasks = evaluation_tasks(LavaConfig(**world), 0.55, count, seed=0)
    settings = {"replan": replan} if replan else {}
    return page_of(name, load(PRETRAINED / name, 0, variant, explain=True, **settings).agent, tasks)


def page_of(name: str, agent: Agent, tasks: Tasks) -> dict:
    recorded = record(agent, LAVA, tasks, 0)
    named = [{"name": f"task {row}", **episode} for row, (episode, _) in enumerate(recorded)]
    return page_data(f"{name} {HOSTILE}", {"agent": HOSTILE}, LAVA, tasks, named)


@pytest.fixture(scope="module")
def data() -> dict:
    return data_of("skipper-regen-50", 6)


def estimate(plan: dict, source: int, target: int) -> float:
    return int(plan["tenths"][source][2 * target : 2 * target + 2], 36) / 10


class Opened:
    def __init__(self, page: Page, complaints: list[str]) -> None:
        self.page, self.complaints = page, complaints

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def place(self) -> int:
        return int(self.text("#place").split("/")[0])

    def wait_for(self, step: int) -> None:
        # The page's security policy forbids the driver's own wait_for_function.
        deadline = time.monotonic() + 20
        while self.place() < step:
            assert time.monotonic() < deadline, "the page does not play"
            self.page.wait_for_timeout(50)

    def scrub(self, step: int) -> None:
        self.page.locator("#scrub").fill(str(step))


@pytest.fixture
def show(browser: Browser, tmp_path: Path):
    pages = []

    def opened(data: dict, **options) -> Opened:
        path = tmp_path / "page.html"
        path.write_text(to_html(data), encoding="utf-8")
        page, complaints = browser.new_page(**options), []
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: complaints.append(asked.url) if asked.url.startswith("http") else None)
        page.goto(path.as_uri())
        pages.append(page)
        return Opened(page, complaints)

    yield opened
    for page in pages:
        page.close()


def test_it_loads_without_an_error_and_nothing_can_be_injected(show, data):
    opened = show(data)
    assert opened.text("#title") == data["title"]
    assert opened.page.evaluate("window.hacked") is None
    assert opened.page.locator("img").count() == 0
    assert opened.page.title().startswith("skipper-regen-50 <img")
    assert opened.complaints == []


def test_it_plays_and_pauses(show, data):
    opened = show(data)
    opened.page.select_option("#speed", "8")
    opened.page.click("#play")
    opened.wait_for(3)
    opened.page.click("#play")
    stopped = opened.place()
    opened.page.wait_for_timeout(400)
    assert opened.place() == stopped >= 3
    assert opened.complaints == []


def test_scrubbing_shows_the_step_its_target_and_its_distances(show, data):
    opened, episode = show(data), data["episodes"][0]
    for step in (0, len(episode["steps"]) // 2, len(episode["steps"]) - 1):
        opened.scrub(step)
        assert opened.place() == step
        moment = episode["steps"][step]
        plan = episode["plans"][moment["plan"]]
        target = plan["target"]
        known = {cell: place for place, cell in enumerate(episode["truth"]["states"])}
        estimated = estimate(plan, 0, target)
        true = episode["truth"]["distance"][known[plan["cells"][0]]][known[plan["cells"][target]]]
        x, y = divmod(moment["target"], 12)
        said = opened.text("#words")
        assert f"Target {target} at ({x}, {y}), {estimated:.1f} steps away (truth {true})." in said
        assert moment["reason"] in said
        row = opened.page.locator(f'#table tr[data-vertex="{target}"]')
        assert "chosen" in row.get_attribute("class")
        assert row.locator(".estimate").inner_text() == f"{estimated:.1f}"
        assert row.locator(".truth").inner_text() == str(true)
        agent = opened.page.locator("#board .agent")
        x, y = divmod(moment["cell"], 12)
        assert (float(agent.get_attribute("cx")), float(agent.get_attribute("cy"))) == (x + 0.5, y + 0.5)
        kept = {(i, j) for i, line in enumerate(plan["status"]) for j, status in enumerate(line) if status == "0"}
        assert opened.page.locator("#board .edge").count() == len({frozenset(edge) for edge in kept})
        assert f"Edges: {len(kept)} kept" in opened.text("#pruned")
    opened.scrub(len(episode["steps"]))
    assert f"ended after {len(episode['steps'])} steps" in opened.text("#words")
    assert opened.complaints == []


def test_delusions_are_marked(show, data):
    opened = show(data)
    episode = data["episodes"][0]
    plan = episode["plans"][0]
    known = {cell: place for place, cell in enumerate(episode["truth"]["states"])}
    places = [known[cell] for cell in plan["cells"]]
    true = episode["truth"]["distance"]
    edges = {
        frozenset((source, target))
        for source, line in enumerate(plan["status"])
        for target, status in enumerate(line)
        if status == "0" and true[places[source]][places[target]] < 0
    }
    vertices = [vertex for vertex in range(1, len(places)) if true[places[0]][places[vertex]] < 0]
    assert edges
    assert vertices
    assert opened.page.locator("#board .edge.delusional").count() == len(edges)
    assert opened.page.locator("#board .vertex.delusional").count() == len(vertices)


def test_pointing_at_an_edge_shows_its_distance(show, data):
    opened, plan = show(data, viewport={"width": 1400, "height": 1400}), data["episodes"][0]["plans"][0]
    # The last edge of the plan: the pointer must also find it where other shapes overlap it.
    source, target = plan["route"][-2:]
    box = opened.page.locator("#board").bounding_box()
    (x, y), (u, v) = (divmod(plan["cells"][vertex], 12) for vertex in (source, target))
    middle = ((x + u + 1) / 2 * box["width"] / 12, (y + v + 1) / 2 * box["height"] / 12)
    opened.page.mouse.move(box["x"] + middle[0], box["y"] + middle[1])
    assert f"{source} → {target}: {estimate(plan, source, target):.1f} steps (truth" in opened.text("#tip")
    opened.page.keyboard.press("ArrowRight")
    assert opened.page.locator("#tip").is_hidden()


def test_clicking_a_checkpoint_lists_its_edges(show, data):
    opened, plan = show(data), data["episodes"][0]["plans"][0]
    opened.page.locator("#board .target").click()
    assert opened.text("#table-title") == f"Edges from checkpoint {plan['target']}"
    opened.page.keyboard.press("Enter")  # the first button of the new table has the focus
    assert opened.text("#table-title") != f"Edges from checkpoint {plan['target']}"


def test_the_keyboard_controls_everything(show, data):
    opened = show(data)
    keys = opened.page.keyboard
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    keys.press("ArrowLeft")
    assert opened.place() == 1
    keys.press("End")
    assert opened.place() == len(data["episodes"][0]["steps"])
    keys.press("n")
    assert opened.place() == 0
    assert opened.page.locator('#gallery button[aria-pressed="true"]').get_attribute("data-episode") == "1"
    keys.press("+")
    assert opened.page.input_value("#speed") == "4"
    keys.press(" ")
    opened.wait_for(1)
    keys.press(" ")
    assert opened.page.get_attribute("#play", "aria-label") == "play"
    assert opened.complaints == []


def test_the_gallery_can_be_filtered(show, data):
    opened = show(data)
    assert opened.page.locator("#gallery button").count() == 6
    opened.page.select_option("#filter", "successes")
    successes = sum(episode["outcome"] == "success" for episode in data["episodes"])
    assert opened.page.locator("#gallery button").count() == successes
    for _ in range(successes):
        opened.page.keyboard.press("n")
        chosen = opened.page.locator('#gallery button[aria-pressed="true"]')
        assert data["episodes"][int(chosen.get_attribute("data-episode"))]["outcome"] == "success"


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (800, "light"), (1900, "dark")])
def test_it_fits_phones_and_wide_screens_light_and_dark(show, data, width, scheme):
    opened = show(data, viewport={"width": width, "height": 800}, color_scheme=scheme)
    overflow = opened.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0
    colour = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == {"dark": "rgb(21, 23, 26)", "light": "rgb(247, 247, 245)"}[scheme]
    opened.page.click("#theme")
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") != colour


def test_attention_is_shown_on_request(show, data):
    opened = show(data)
    assert opened.page.locator("#board .field").count() == 0
    opened.page.check("#layer-fields")
    assert opened.page.locator("#board .field").count() == len(data["episodes"][0]["steps"][0]["attention"])


def test_an_agent_without_plans_shows_its_values(show):
    data = data_of("modelfree-50", 1)
    opened, moment = show(data), data["episodes"][0]["steps"][0]
    assert opened.text("#table-title") == "Values of the actions"
    assert f"{moment['values'][moment['action']]:.3f}" in opened.text("#table tr.chosen")
    assert opened.complaints == []


def test_a_kept_plan_is_distinguished_from_a_new_one(show):
    data = data_of("skipper-once-50", 2, replan="trigger")
    opened, steps = show(data), data["episodes"][0]["steps"]
    kept = next(step for step, moment in enumerate(steps) if not moment["reason"])
    opened.scrub(kept)
    assert opened.text("#words").startswith("Keeps to its plan. Target")
    assert "where it planned" in opened.text("#table-title")
    assert opened.complaints == []


def test_an_agent_that_always_aims_at_the_goal_plans_nothing(show):
    opened = show(data_of("skipper-regen-50", 1, "skipper-goal"))
    assert opened.text("#words").startswith("Chose a target because the episode begins. Target at")
    opened.page.keyboard.press("ArrowRight")
    assert opened.text("#words").startswith("Keeps to its target.")
    assert opened.complaints == []


def test_slips_are_reported(show):
    data = data_of("skipper-regen-50", 2, slip=0.5)
    opened, steps = show(data), data["episodes"][0]["steps"]
    assert any("slipped" in moment for moment in steps)
    for step, moment in enumerate(steps):
        opened.scrub(step)
        assert ("But it slips." in opened.text("#words")) == ("slipped" in moment)


def test_other_worlds_and_true_plans(show):
    world = LavaConfig(8, 5, dynamics="walls")
    agent = make_baseline("skipper-oracle", LAVA.spec(world), np.random.default_rng(0))
    data = page_of("oracle", agent, evaluation_tasks(world, 0.4, 2, seed=0))
    opened, steps = show(data), data["episodes"][0]["steps"]
    assert opened.page.get_attribute("#board", "viewBox") == "0 0 8 5"
    for step in range(len(steps) + 1):
        opened.scrub(step)
    assert opened.page.locator("#best .optimal").count() == 1
    assert opened.complaints == []


def test_a_chain_of_subgoals_is_shown(show):
    tasks = evaluation_tasks(LavaConfig(8, 8), 0.3, 2, seed=0)
    data = page_of("chain", ChainAgent(LAVA, tasks), tasks)
    opened, episode = show(data), data["episodes"][0]
    plan, moment = episode["plans"][0], episode["steps"][0]
    x, y = divmod(moment["target"], 8)
    words = opened.text("#words")
    assert f"Planned because four steps have passed. Target 1 at ({x}, {y}), truly 2 steps away." in words
    assert opened.text("#table-title") == "Subgoals of the plan"
    assert opened.page.locator("#table tbody tr").count() == 3
    assert opened.page.locator('#table tr[data-vertex="2"] .truth').inner_text() == "4"
    assert opened.page.locator("#board .vertex").count() == len(plan["cells"]) - 1
    assert opened.page.locator("#board .route").count() == 1
    assert opened.page.locator("#board .edge").count() == 0
    assert opened.page.locator("#chart-part").is_hidden()
    assert opened.page.locator("#picture-part").is_hidden()
    assert opened.page.locator("#layer-edges").count() == 0
    for step in range(len(episode["steps"]) + 1):
        opened.scrub(step)
    assert opened.complaints == []


def test_a_plan_that_is_a_picture_is_shown(show):
    tasks = evaluation_tasks(LavaConfig(8, 8), 0.3, 2, seed=0)
    data = page_of("picture", PictureAgent(LAVA, tasks), tasks)
    opened = show(data)
    assert "Aims at the goal in the picture." in opened.text("#words")
    assert opened.page.locator("#picture-part").is_visible()
    canvas = opened.page.locator("#picture")
    assert canvas.evaluate("canvas => [canvas.height, canvas.width]") == list(PICTURE.shape[:2])
    pixel = canvas.evaluate("canvas => [...canvas.getContext('2d').getImageData(1, 0, 1, 1).data]")
    assert pixel == [*PICTURE[0, 1].tolist(), 255]
    pixels = "all => all.map(canvas => [...canvas.getContext('2d').getImageData(2, 1, 1, 1).data])"
    expected = opened.page.locator("#forecast canvas").evaluate_all(pixels)
    assert expected == [[*picture[1, 2].tolist(), 255] for picture in FORECAST]
    opened.scrub(len(data["episodes"][0]["steps"]))
    assert opened.page.locator("#picture-part").is_hidden()
    assert opened.complaints == []


def test_without_ground_truth_nothing_is_said_about_it(show, data):
    """The same episodes, as an environment without truth and without a goal would give them."""
    hidden = {"truth", "optimal", "goal"}
    episodes = []
    for episode in data["episodes"]:
        steps = [{k: v for k, v in step.items() if k not in ("state", "target_state")} for step in episode["steps"]]
        plans = [{k: v for k, v in plan.items() if k != "states"} for plan in episode["plans"]]
        rest = {name: value for name, value in episode.items() if name not in hidden}
        episodes.append(rest | {"steps": steps, "plans": plans})
    opened = show(data | {"episodes": episodes})
    for step in range(0, len(episodes[0]["steps"]) + 1, 5):
        opened.scrub(step)
        assert "truth" not in opened.text("main").lower()
        assert "truly" not in opened.text("#words")
    opened.scrub(0)
    assert opened.page.locator("#board .delusional").count() == 0
    assert opened.page.locator("#chart-part").is_hidden()
    assert opened.page.locator("#best .optimal").count() == 0
    assert opened.page.locator("#layer-optimal").count() == 0
    assert "goal" not in opened.text("#table")
    assert "delusional targets" not in opened.text("#filter")
    assert opened.complaints == []
