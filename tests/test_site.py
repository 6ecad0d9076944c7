"""The documentation as a site: built strictly, complete without a connection, readable on phones and wide screens."""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SIZES = {"phone": {"width": 390, "height": 844}, "wide": {"width": 1440, "height": 900}}
FETCHES = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}  # what a page loads itself


def build(root: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("docs") / "site"
    built = build(ROOT, out)
    assert built.returncode == 0, built.stdout + built.stderr
    return out


@pytest.mark.parametrize("name", ["success", "death"])
def test_live_pages_are_of_the_present_viewer(name):
    before, after = (ROOT / "skipper" / "viewer" / "template.html").read_text(encoding="utf-8").split("__DATA__")
    text = (ROOT / "docs" / "live" / f"{name}.html").read_text(encoding="utf-8")
    assert text.startswith(before), "run scripts/docs_pictures.py"
    assert text.endswith(after)
    assert len(text) < 100_000


class Fetched(HTMLParser):
    """Addresses that a page loads without being asked, and its links."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in FETCHES and FETCHES[tag] in given:
            self.fetched.append(given[FETCHES[tag]])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if "id" in given:
            self.names.add(given["id"])


def read(page: Path) -> Fetched:
    parser = Fetched()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def foreign(address: str) -> bool:
    return bool(re.match(r"(https?:)?//", address))


def test_no_page_loads_anything_from_another_host(site):
    pages = {page: read(page) for page in site.rglob("*.html")}
    assert len(pages) > 15
    assert {address for found in pages.values() for address in found.fetched if foreign(address)} == set()
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//", styles) == []


def test_all_links_lead_somewhere_also_those_of_plain_html(site):
    pages = {page: read(page) for page in site.rglob("*.html") if page.name != "404.html"}
    broken = []
    for page, found in pages.items():
        for address in found.links + found.fetched:
            path, _, anchor = address.partition("#")
            if foreign(address) or address.startswith(("mailto:", "data:", "javascript:")):
                continue
            target = (page.parent / path).resolve() if path else page
            target = target / "index.html" if target.is_dir() else target
            known = pages[target].names if target in pages else set()
            if not target.exists() or (anchor and target in pages and anchor not in known | {"__skip"}):
                broken.append((page.name, address))
    assert broken == []


def test_all_pages_are_in_the_navigation_and_the_reference_has_the_docstrings(site):
    names = {path.name for path in (ROOT / "docs").glob("*.md")}
    linked = {Path(link).with_suffix(".md").name for link in read(site / "index.html").links if link.endswith(".html")}
    assert names - {"index.md"} <= linked
    reference = (site / "api.html").read_text(encoding="utf-8")
    assert "The agent of a run folder" in reference
    assert "Choose one action per environment of the batch." in reference


@pytest.mark.parametrize(
    "line", ["[gone](nowhere.md)", "[gone](faq.md#nothing)", "[gone](../nowhere.json)", "::: skipper.gone"]
)
def test_a_broken_link_or_name_fails_the_build(line, tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    for name in ("mkdocs.yml", "CONTRIBUTING.md", "CHANGELOG.md", "results/README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("results/world/bench.json", "examples/compare_with_sb3.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "docs" / "api.md").write_text("# API\n")  # the rest of the reference takes long
    (tmp_path / "docs" / "faq.md").write_text(f"# FAQ\n\n{line}\n")
    assert build(tmp_path, tmp_path / "site").returncode != 0


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name there
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["index", "concepts", "live"])
def test_pages_open_without_complaints_and_fit_the_screen(name, size, address, browser, tmp_path):
    page, complaints = browser.new_page(viewport=SIZES[size]), []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda asked: complaints.append(asked.url))
    page.on("request", lambda asked: None if asked.url.startswith((address, "data:")) else complaints.append(asked.url))
    page.goto(f"{address}/{name}.html", wait_until="networkidle")
    page.screenshot(path=Path(os.environ.get("SCREENSHOTS", tmp_path)) / f"{name}-{size}.png")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= SIZES[size]["width"]
    if name == "live":
        example = page.frame_locator("iframe.live").first
        example.locator("#play").scroll_into_view_if_needed()
        example.locator("#scrub").fill("3")
        assert example.locator("#place").inner_text().startswith("3")
        page.screenshot(path=Path(os.environ.get("SCREENSHOTS", tmp_path)) / f"{name}-{size}-played.png")
    assert complaints == []
    page.close()


def test_the_search_finds_a_page(address, browser):
    page = browser.new_page(viewport=SIZES["wide"])
    page.goto(f"{address}/index.html", wait_until="networkidle")
    page.locator("input.md-search__input").click()
    page.keyboard.type("delusion")
    page.locator(".md-search-result__item a").first.wait_for()
    assert page.locator(".md-search-result__item").count() > 0
    page.close()
