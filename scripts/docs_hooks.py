"""Lets the site show files of the repository that lie outside of docs/: pages for Markdown, copies of the rest.

Links between them stay as they are on disk, so that the same pages can be read in the repository; here they are turned
to where a file is on the site, which is ``repository/`` and its path.
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
DOCS, OUTSIDE = "docs", "repository"
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "results/README.md")
LINK = re.compile(r"\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages outside of docs/, and every file that a page links to."""
    for name in PAGES:
        files.append(File.generated(config, f"{OUTSIDE}/{name}", abs_src_path=str(ROOT / name)))
    for page in [file for file in files if file.is_documentation_page()]:
        for target in _targets(page.content_string, _source(page.src_uri)):
            site = _site(target)
            if site.startswith(OUTSIDE) and site not in files.src_uris and (ROOT / target).is_file():
                files.append(File.generated(config, site, abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links between files of the repository into links between places of the site."""
    source = _source(page.file.src_uri)

    def turned(link: re.Match[str]) -> str:
        target = _resolve(source, link["path"])
        if not (ROOT / target).exists():
            return link[0]  # the strict build reports it
        there = os.path.relpath(_site(target), PurePosixPath(page.file.src_uri).parent)
        return f"]({there}{link['anchor'] or ''})"

    return LINK.sub(turned, markdown)


def _targets(markdown: str, source: str) -> list[str]:
    return [_resolve(source, link["path"]) for link in LINK.finditer(markdown)]


def _source(site: str) -> str:
    """The path in the repository of a file of the site."""
    return site.removeprefix(f"{OUTSIDE}/") if site.startswith(f"{OUTSIDE}/") else f"{DOCS}/{site}"


def _site(path: str) -> str:
    """The path on the site of a file of the repository."""
    return path.removeprefix(f"{DOCS}/") if path.startswith(f"{DOCS}/") else f"{OUTSIDE}/{path}"


def _resolve(source: str, link: str) -> str:
    """The path in the repository that a link of the file ``source`` leads to."""
    return os.path.normpath(f"{os.path.dirname(source)}/{link}").lstrip("/")
