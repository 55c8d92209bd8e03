"""Tables on terminals of any width."""

import io

import pytest
from rich.console import Console

from airpath.terminal_table import print_table

HEAD = ("study", "figure", "ours", "95 % interval", "remark")
ROWS = [
    ("hsdpa-sim", "round-trip (ms)", "230.8", "230.5 to 231.2", ""),
    ("gprs-proxy", "throughput (kbit/s)", "31.25", "31.2 to 31.4", ""),
]


def printed(width: int, rows: list[tuple[str, ...]] = ROWS) -> str:
    text = io.StringIO()
    print_table(Console(file=text, width=width), HEAD, rows, titles=HEAD[:2], right=HEAD[2:4])
    return text.getvalue()


@pytest.mark.parametrize("width", [30, 40, 50, 60, 70, 80, 120])
def test_no_word_is_cut_and_no_line_is_too_long(width: int) -> None:
    text = printed(width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    words = {word.strip(",") for word in text.split()}
    for row in ROWS:
        assert {word for cell in row for word in cell.split()} <= words


def test_a_wide_table_has_a_line_for_each_row() -> None:
    assert len(printed(120).splitlines()) == 2 + len(ROWS)
    assert "remark" in printed(120)


def test_an_empty_column_is_omitted_before_a_cell_is_wrapped() -> None:
    assert len(printed(60).splitlines()) == 2 + len(ROWS)
    assert "remark" not in printed(60)
    assert "remark" in printed(60, [*ROWS, ("a", "b", "c", "d", "e")])


def test_descriptions_are_cut_where_the_other_columns_leave_room() -> None:
    rows = [("gprs", "39.77 kbit/s", "GPRS with four timeslots down and one up"), ("b", "1 bit/s", "short")]

    def shown(width: int) -> list[str]:
        text = io.StringIO()
        print_table(Console(file=text, width=width), ("name", "rate", "what it is"), rows, brief="what it is")
        return text.getvalue().splitlines()

    assert len(shown(50)) == 2 + len(rows)
    assert shown(50)[2].rstrip() == "gprs   39.77 kbit/s   GPRS with four timeslots …"
    assert "one up" in " ".join(shown(100))
    assert "what it is" not in shown(30)[0], "too narrow to cut"
    assert len(shown(30)) == 2 + len(rows)


def test_a_deviation_stays_beside_its_sign() -> None:
    text = io.StringIO()
    print_table(Console(file=text, width=24), ("flow", "time"), [("a name of a flow", "25.92 s ± 327.6 ms")])
    assert "± 327.6 ms" in text.getvalue()


def test_a_number_stays_beside_its_unit() -> None:
    text = io.StringIO()
    rows = [("first of all", "12.5 kbit/s"), ("second", "1 MB, 2 MB")]
    print_table(Console(file=text, width=20), ("name", "rate"), rows)
    assert "12.5 kbit/s" in text.getvalue()


def test_a_narrow_terminal_has_a_paragraph_for_each_row() -> None:
    lines = printed(30).splitlines()
    assert lines[0].strip() == "hsdpa-sim, round-trip (ms)"
    assert lines[1].strip().startswith("ours 230.8, 95 % interval")


def test_the_column_that_is_wrapped_last_gets_the_width() -> None:
    head = ("", "connection", "main cause")
    rows = [("1", "192.0.2.1:49152 → 198.51.100.1:80", "waiting for the applications, 86 %")]

    def printed_with(whole: str) -> str:
        text = io.StringIO()
        print_table(Console(file=text, width=56), head, rows, whole=whole)
        return text.getvalue()

    assert "waiting for the applications, 86 %" in printed_with("main cause")
    assert "192.0.2.1:49152 → 198.51.100.1:80" in printed_with("connection")


def test_a_paragraph_keeps_a_number_beside_its_unit() -> None:
    for width in range(20, 30):
        text = io.StringIO()
        rows = [("a-long-name-of-a-flow", "1 MB", "88.3 ms", "84 %")]
        print_table(Console(file=text, width=width), ("flow", "bytes", "time", "share"), rows)
        assert all(each in text.getvalue() for each in ("1 MB", "88.3 ms", "84 %")), width
