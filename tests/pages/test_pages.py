"""Pages of airpath, simulated and in Chromium."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import airpath
from airpath import export
from airpath.page.site import contents
from support import ROOT, Command
from support.needs import needs

EXAMPLE = ROOT / "examples" / "news.page"
BEARER = 'format = 1\n[bearer]\npreset = "umts-dch-384"\n[tcp]\nprofile = "linux-6"\n'


def run(folder: Path, page: Path | str, keys: str = "") -> airpath.Result:
    """Simulate a page over UMTS."""
    return airpath.run(f'{BEARER}[[flow]]\nkind = "page"\npage = "{page}"\n{keys}', out=folder / "simulated")


def test_every_page_is_listed_and_shown(airpath_command: Command) -> None:
    pages = airpath_command("page", "list", "--format", "json").json
    assert len(pages) == 6
    for page in pages:
        assert page["source"], page["name"]
        shown = airpath_command("page", "show", page["name"], "--format", "toml")
        (airpath_command.folder / "copy.page").write_text(shown.out)
        copy = airpath_command("page", "show", "copy.page", "--format", "json").json
        assert copy == page
    wrong = airpath_command("page", "show", "static-sit")
    assert (wrong.code, "did you mean `static-site`" in wrong.err) == (2, True)


def test_a_simulated_page_has_views_objects_and_a_har_file(tmp_path: Path, airpath_command: Command) -> None:
    result = run(tmp_path, EXAMPLE, "views = 2")
    (first, second), objects = result.pages.rows(named=True), result.objects
    assert (first["requests"], first["objects"], second["requests"], second["cached"]) == (8, 8, 5, 3)
    assert objects.height == 16
    assert first["page_time_s"] >= objects.filter(objects["view"] == 0)["finished_s"].max()
    assert first["bytes"] == sum(objects.filter(objects["view"] == 0)["bytes"])
    written = airpath_command("export", str(result.path), "--format", "har", "-o", "pages.har")
    assert written.code == 0, written.err
    log = json.loads((airpath_command.folder / "pages.har").read_text())["log"]
    assert (log["version"], len(log["pages"]), len(log["entries"])) == ("1.2", 2, 13)
    for entry in log["entries"]:
        parts = [max(0, part) for part in entry["timings"].values()]
        assert entry["time"] == pytest.approx(sum(parts))
    script = next(each for each in log["entries"] if each["request"]["url"].endswith("/app.js"))["response"]
    assert (script["content"]["size"], script["bodySize"]) == (180_000, 55_000), "before and after compression"
    opened = result.flows["opened"].item()
    assert f", {opened} connections" in airpath_command("trace", str(result.path)).out
    again = airpath_command("page", "import", "pages.har", "-o", "again.page")
    assert (again.code, again.out.strip()) == (0, "again.page"), again.err
    totals = [airpath_command("page", "show", page, "--format", "json").json for page in ("again.page", str(EXAMPLE))]
    keys = ("bytes", "compressed_bytes")
    assert [totals[0][key] for key in keys] == [totals[1][key] for key in keys]


def test_connections_of_two_flows_have_different_names_in_a_har_file(tmp_path: Path) -> None:
    text = """
    format = 1
    bearer.preset = "lte-20mhz"
    [[mobile]]
    count = 2
    [[flow]]
    kind = "page"
    page = "static-site"
    """
    result = airpath.run(text)
    path = export.har(result, tmp_path / "pages.har")
    entries = json.loads(path.read_text(encoding="utf-8"))["log"]["entries"]
    pages: dict[str, set[str]] = {}
    for entry in entries:
        pages.setdefault(entry["connection"], set()).add(entry["pageref"])
    assert all(len(refs) == 1 for refs in pages.values())
    assert len(pages) == result.flows["opened"].sum()


def test_a_har_file_has_urls(tmp_path: Path, airpath_command: Command) -> None:
    """Names of objects may have characters that a URL cannot have (RFC 3986 §2.1)."""
    page = tmp_path / "odd.page"
    page.write_text('format = 1\nname = "p"\n[[object]]\nname = "a b#c"\ntype = "document"\nsize = "1 kB"\n')
    result = run(tmp_path, page)
    assert airpath_command("export", str(result.path), "--format", "har", "-o", "pages.har").code == 0
    [entry] = json.loads((airpath_command.folder / "pages.har").read_text())["log"]["entries"]
    assert entry["request"]["url"] == "http://www.example.com/a%20b%23c"


def test_contents_have_the_sizes_of_the_page() -> None:
    page = json.loads(airpath._native.page("umts-live-cnn"))
    plain, packed = contents(page, compression=False), contents(page, compression=True)
    assert len(plain) == 70
    for bodies, key in ((plain, "bytes"), (packed, "compressed_bytes")):
        assert sum(len(each.body) for each in bodies.values()) == pytest.approx(page[key], rel=0.02)


@needs("tun")
def test_chromium_takes_as_long_as_the_simulation(
    tmp_path: Path, airpath_command: Command, need: Callable[..., str]
) -> None:
    need("chromium")
    options = ("--link", "umts-dch-384", "--repeat-view", "--format", "json", "-o", str(tmp_path / "real"))
    done = airpath_command("page", "load", str(EXAMPLE), *options)
    assert done.code == 0, done.err
    pages = run(tmp_path, EXAMPLE, "views = 2").pages.rows(named=True)
    for real, simulated in zip(done.json, pages, strict=True):
        assert (real["requests"], real["missing"], real["failed"]) == (simulated["requests"], [], {})
        assert real["page_time_s"] == pytest.approx(simulated["page_time_s"], rel=0.2)
        assert real["first_contentful_paint_s"] <= real["page_time_s"] + 1
    log = json.loads((tmp_path / "real" / "page.har").read_text())["log"]
    assert len([entry for entry in log["entries"] if entry["pageref"] == "run_0_view_0"]) == 8
    assert len(list((tmp_path / "real" / "captures").glob("*.pcapng"))) == 2


@needs("tun")
def test_a_browser_that_ends_early_is_an_error(tmp_path: Path, airpath_command: Command) -> None:
    """A browser that ends, or is missing, or hangs, leaves a message with the reason."""
    folder = tmp_path / "bin"
    folder.mkdir()
    browser = folder / "chromium"
    for script, reason in (("echo no display >&2; exit 3", "no display"), ("sleep 60", "did not answer")):
        browser.write_text(f"#!/bin/sh\n{script}\n")
        browser.chmod(0o755)
        options = ("--link", "wired", "--timeout", "3", "-o", str(tmp_path / "out"))
        done = airpath_command("page", "load", str(EXAMPLE), *options, PATH=f"{folder}:{os.environ['PATH']}")
        assert (done.code, reason in done.err) == (1, True), done.err
