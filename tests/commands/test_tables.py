from io import StringIO

from rich.console import Console

from skipper.commands.tables import errors_table


def test_errors_from_and_to_delusional_vertices_have_rows_of_their_own():
    plans = {"edge_error_from_delusional": 2.0, "edge_error_to_delusional": 0.5, "delusional_target": None}
    errors = {"0.25": {"edges": {}, "walks": {}, "plans": plans, "generator": {}}}
    console = Console(file=StringIO(), width=100)
    console.print(errors_table(errors))
    rows = [line.split() for line in console.file.getvalue().splitlines()]
    assert ["│", "edge", "error", "from", "delusional", "│", "2.000", "│"] in rows
    assert ["│", "edge", "error", "to", "delusional", "│", "0.500", "│"] in rows
    assert not any("target" in row for row in rows)
