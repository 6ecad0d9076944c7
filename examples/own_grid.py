"""An own grid in 30 lines, docs/your_environment.md as a script: python examples/own_grid.py [FOLDER]."""

import re
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "your_environment.md"


def main(out: Path) -> None:
    """Run the code of the page, with its run in the folder ``out``."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {"__name__": "own_grid"}
    exec("\n".join(blocks).replace('Path("runs/pond")', f"Path({str(out)!r})"), names)
    print((out / "evaluations.jsonl").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "pond")
