"""A report as one self-contained HTML page, and as Markdown: headings, text, figures, tables, links and details."""

import base64
import html
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from skipper.analysis.paper_tables import Table

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { border-top: 1px solid #ccc; padding-top: 1.5rem; margin-top: 2.5rem; }
img { max-width: 100%; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; margin: 0.5rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: 0.2rem 0.7rem; text-align: left; white-space: nowrap; }
td:nth-child(n+2) { font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: bold; padding: 0.5rem 0; }
pre { background: #f5f5f5; padding: 0.7rem; overflow-x: auto; font-size: 12px; }
.note { color: #555; font-size: 13px; }
"""
TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


class Link(NamedTuple):
    """A run: its name, where it is from the report's folder, and what there is to say of it."""

    text: str
    target: str
    note: str


class Section(NamedTuple):
    """A part of the report, from top to bottom."""

    title: str
    paragraphs: Sequence[str] = ()
    figures: Sequence[Path] = ()
    tables: Sequence[Table] = ()
    links: Sequence[Link] = ()
    details: Sequence[tuple[str, str]] = ()  # a heading, and text that is shown on request


def to_html(title: str, sections: Sequence[Section]) -> str:
    """The page; figures are part of it."""
    contents = "".join(f'<li><a href="#s{index}">{_safe(each.title)}</a></li>' for index, each in enumerate(sections))
    body = "".join(_html_section(index, section) for index, section in enumerate(sections))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{_safe(title)}</title>'
        f'<link rel="icon" href="data:,"><style>{STYLE}</style></head>'
        f"<body><h1>{_safe(title)}</h1><ul>{contents}</ul>{body}</body></html>\n"
    )


def _html_section(index: int, section: Section) -> str:
    parts = [f'<section><h2 id="s{index}">{_safe(section.title)}</h2>']
    parts += [f"<p>{_safe(text)}</p>" for text in section.paragraphs]
    parts += [_html_figure(path, section.title) for path in section.figures]
    parts += [_html_table(table) for table in section.tables]
    links = (f'<li><a href="{_safe(to)}">{_safe(text)}</a> {_safe(note)}</li>' for text, to, note in section.links)
    if section.links:
        parts.append(f"<details><summary>{len(section.links)} runs</summary><ul>{''.join(links)}</ul></details>")
    parts += [
        f"<details><summary>{_safe(heading)}</summary><pre>{_safe(text)}</pre></details>"
        for heading, text in section.details
    ]
    return "".join([*parts, "</section>"])


def _html_figure(path: Path, title: str) -> str:
    content = base64.b64encode(path.read_bytes()).decode()
    return f'<p><img alt="{_safe(title)}" src="data:{TYPES[path.suffix]};base64,{content}"></p>'


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{_safe(column)}</th>" for column in table.columns)
    rows = "".join("<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    notes = "".join(f'<p class="note">{_safe(note)}</p>' for note in table.notes)
    return (
        f'<div class="scroll"><table><caption>{_safe(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{notes}"
    )


def _safe(text: str) -> str:
    return html.escape(text, quote=True)


def to_markdown(title: str, sections: Sequence[Section], folder: Path) -> str:
    """The same in Markdown; figures are linked from ``folder``."""
    parts = [f"# {title}"]
    for section in sections:
        parts.append(f"## {section.title}")
        parts += section.paragraphs
        parts += [f"![{section.title}]({path.relative_to(folder).as_posix()})" for path in section.figures]
        for table in section.tables:
            parts += [f"**{table.title}**", _markdown_table(table), *table.notes]
        if section.links:
            parts.append("\n".join(f"- [{text}]({target}) {note}" for text, target, note in section.links))
        parts += [f"{heading}:\n\n```\n{text}\n```" for heading, text in section.details]
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(table.columns), "|---" * len(table.columns) + "|", *map(line, table.rows)])
