"""Page files from HAR files and folders, and errors of both."""

import contextlib
import functools
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airpath.page import PageProblemError, from_folder, from_har, recording
from support import Command


def entry(url: str, start: str, wait: float, **keys: Any) -> dict[str, Any]:
    """Return an entry of a HAR file, as Chromium writes it."""
    content = {"size": keys.get("size", 1_000), "mimeType": keys.get("mime", "image/png")}
    headers = [{"name": "Cache-Control", "value": keys["control"]}] if "control" in keys else []
    return {
        "pageref": "page_1",
        "startedDateTime": f"2026-11-23T05:00:{start}Z",
        "request": {"method": "GET", "url": url},
        "response": {"status": 200, "headers": headers, "content": content, "bodySize": keys.get("sent", -1)},
        "timings": {
            "blocked": -1,
            "dns": -1,
            "connect": -1,
            "send": 0,
            "wait": wait,
            "receive": keys.get("receive", 0),
        },
        **({"_initiator": {"type": "parser", "url": keys["initiator"]}} if "initiator" in keys else {}),
    }


SITE = "https://www.example.org/"
ENTRIES = [
    entry(SITE, "00.000", 100, size=10_000, sent=3_000, mime="text/html; charset=utf-8", receive=400),
    # Requested when half of the document had arrived.
    entry(f"{SITE}app.js", "00.300", 150, mime="text/javascript", initiator=SITE, control="max-age=600"),
    entry("https://cdn.example.org/a.png", "00.600", 80, initiator=f"{SITE}app.js", control="no-store"),
    entry("data:image/png;base64,AAAA", "00.700", 0),
]


def write(folder: Path, document: Any) -> Path:
    """Write a HAR file."""
    path = folder / "site.har"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def test_a_har_file_becomes_a_page(tmp_path: Path) -> None:
    """Sizes, types and hosts are copied; references and times of servers are inferred."""
    page = from_har(write(tmp_path, {"log": {"pages": [{"id": "page_1"}], "entries": ENTRIES}}))
    document, script, image = page.objects
    assert (document["name"], document["type"], document["size"], document["compressed"]) == (
        "/",
        "document",
        "10000 B",
        "3000 B",
    )
    assert (script["referrer"], script["at"], script["cache"], script["wait"]) == ("/", "5000 B", "fresh", "50.0 ms")
    assert (image["origin"], image["referrer"], image["cache"]) == ("cdn.example.org", "/app.js", "never")
    assert "at" not in image, "a script names it when it runs"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "site.har:1: this is not JSON"),
        ("[]", "site.har: log: it is missing"),
        ({"log": {"entries": {}}}, "site.har: log.entries: it is no array"),
        ({"log": {"entries": [7]}}, "site.har: log.entries.0.request: it is missing"),
        ({"log": {"entries": []}}, "no HTTP response"),
        ({"log": {"entries": [ENTRIES[3]]}}, "no HTTP response"),
        (
            {"log": {"entries": [{**ENTRIES[0], "timings": {"wait": "soon"}}]}},
            "log.entries.0.timings.wait: it is no number",
        ),
        ({"log": {"entries": [{**ENTRIES[0], "startedDateTime": "noon"}]}}, "`noon` is no date"),
        ("[" * 100_000, "this is not JSON"),
    ],
)
def test_errors_of_a_har_file_name_the_field(tmp_path: Path, document: Any, message: str) -> None:
    """Each error has the file, the field and the reason."""
    with pytest.raises(PageProblemError, match=r"site\.har") as error:
        from_har(write(tmp_path, document))
    assert message in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, inner in items for place in places(inner, (*at, key)))]


@given(data=st.data())
def test_any_value_anywhere_in_a_har_file_is_a_page_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Values of other types never cause another exception, read as a page or as a recorded site."""
    document = json.loads(json.dumps({"log": {"pages": [{"id": "page_1"}], "entries": ENTRIES}}))
    for each in document["log"]["entries"][:2]:
        each["response"]["content"] |= {"text": "YQ==", "encoding": "base64"}
    document["log"]["entries"][2]["response"]["content"]["_file"] = "contents/00000"
    *path, last = data.draw(st.sampled_from(places(document)[1:]))
    table = document
    for key in path:
        table = table[key]
    table[last] = data.draw(JSON)
    file = write(tmp_path_factory.mktemp("har"), document)
    for read in (from_har, recording.document_of, functools.partial(recording.contents, compression=True)):
        with contextlib.suppress(PageProblemError):
            read(file)


@given(data=st.data())
def test_any_change_of_the_bytes_of_a_har_file_is_a_page_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Broken JSON never causes another exception."""
    whole = json.dumps({"log": {"pages": [{"id": "page_1"}], "entries": ENTRIES}}).encode()
    at, removed = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 40))
    file = tmp_path_factory.mktemp("har") / "site.har"
    file.write_bytes(whole[:at] + data.draw(st.binary(max_size=20)) + whole[at + removed :])
    for read in (from_har, recording.document_of):
        with contextlib.suppress(PageProblemError):
            read(file)


def test_a_page_of_a_har_file_can_be_chosen(tmp_path: Path) -> None:
    """An unknown page is an error with the known ones."""
    path = write(tmp_path, {"log": {"pages": [{"id": "page_1"}], "entries": ENTRIES}})
    assert len(from_har(path, "page_1").objects) == 3
    with pytest.raises(PageProblemError, match="no page `page_2`; known are page_1"):
        from_har(path, "page_2")


def test_a_redirect_refers_to_the_document(tmp_path: Path) -> None:
    """A redirect is what the user opens; the references are those of the document."""
    opened = entry("http://example.org/", "00.000", 100, size=0, mime="text/html")
    moved = entry("https://example.org/", "00.200", 100, size=0, mime="text/html")
    for redirect in (opened, moved):
        redirect["response"]["status"] = 301
    document, script, image = (
        entry | {"startedDateTime": entry["startedDateTime"].replace(":00.", ":01.")} for entry in ENTRIES[:3]
    )
    del script["_initiator"]
    kept = entry(f"{SITE}app.js", "02.000", 100, size=0)
    kept["response"]["status"] = 304
    entries = [opened, moved, document, script, image, kept]
    objects = from_har(write(tmp_path, {"log": {"entries": entries}})).objects
    assert [(each["name"], each.get("referrer"), each.get("at")) for each in objects] == [
        ("/", None, None),
        ("/#2", "/", None),
        ("/#3", "/#2", None),
        ("/app.js", "/#3", "5000 B"),
        ("/a.png", "/app.js", None),
    ]


def test_entries_of_a_har_file_need_no_page(tmp_path: Path) -> None:
    """`pageref` is optional (HAR 1.2)."""
    pages = [{"id": "page_1"}, {"id": "page_2"}]
    without = [{key: value for key, value in each.items() if key != "pageref"} for each in ENTRIES]
    assert len(from_har(write(tmp_path, {"log": {"pages": pages[:1], "entries": without}})).objects) == 3
    path = write(tmp_path, {"log": {"pages": pages, "entries": without}})
    assert len(from_har(path).objects) == 3
    with pytest.raises(PageProblemError, match="no `pageref` names a page; leave out --page"):
        from_har(path, "page_2")
    path = write(tmp_path, {"log": {"pages": pages, "entries": ENTRIES}})
    with pytest.raises(PageProblemError, match="no HTTP response of page `page_2`; pages with responses: page_1"):
        from_har(path, "page_2")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"response": ENTRIES[1]["response"] | {"content": {"size": 2**31}}},
            "response.content.size: it is above 1 GiB",
        ),
        ({"timings": ENTRIES[1]["timings"] | {"wait": 1e12}}, "timings.wait: it is above a year"),
    ],
)
def test_an_import_that_fails_keeps_the_earlier_file(
    airpath_command: Command, change: dict[str, Any], message: str
) -> None:
    """The page is checked before it replaces a file, and the error names the field."""
    write(airpath_command.folder, {"log": {"entries": [ENTRIES[0], ENTRIES[1] | change]}})
    earlier = airpath_command.folder / "site.page"
    earlier.write_text("earlier")
    done = airpath_command("page", "import", "site.har", "-o", "site.page")
    assert (done.code, f"log.entries.1.{message}" in " ".join(done.err.split())) == (2, True), done.err
    assert earlier.read_text() == "earlier"


@pytest.mark.parametrize("base", ["sub/", "https://www.example.org/sub/", "/sub/x.html"])
def test_references_of_a_document_are_relative_to_its_base(tmp_path: Path, base: str) -> None:
    """The first `<base href>` counts, from there on (HTML, "the base element")."""
    html = (
        f'<link rel="stylesheet" href="a.css"><base target="_top"><base href="{base}"><base href="other/">'
        '<img src="b.png"><style>p { background: url(c.png) }</style><p style="background: url(\'d.png\')">'
        '<img src="../e.png">'
    )
    files = {
        "index.html": html + " " * 100,
        "a.css": "",
        "sub/b.png": "",
        "sub/c.png": "",
        "sub/d.png": "",
        "e.png": "",
    }
    (tmp_path / "sub").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    objects = {each["name"]: each for each in from_folder(tmp_path).objects}
    at = {name: int(each["at"].removesuffix(" B")) for name, each in objects.items() if "at" in each}
    assert at == {
        "a.css": 0,
        "sub/b.png": html.index('<img src="b'),
        "sub/c.png": html.index("url(c"),
        "sub/d.png": html.index("<p style"),
        "e.png": html.index('<img src="../'),
    }


def test_what_a_browser_does_not_fetch_is_no_reference(tmp_path: Path) -> None:
    """Such a file is found at the end of the document."""
    html = (
        "<noscript><img src=a.png></noscript><template><template></template><img src=b.png></template>"
        "<script>'url(c.png)'</script><!-- url(d.png) --><style>/* url(e.png) */</style>url(f.png)<img src=z.png>"
    )
    (tmp_path / "index.html").write_text(html + " " * 100)
    for name in "abcdefz":
        (tmp_path / f"{name}.png").write_text("")
    objects = from_folder(tmp_path).objects
    assert [each["name"] for each in objects if "at" in each] == ["z.png"]


def test_a_folder_becomes_a_page(tmp_path: Path) -> None:
    """References of HTML and CSS have bytes; a file without one is found at the end."""
    html = (
        '<!doctype html><p>\u00e4</p>\n<link rel="stylesheet" href="css/main.css">'
        '<img src="a%20b.png" srcset="c.png 2x">'
    )
    files = {
        "index.html": html.encode() + b" " * 2_000,
        "css/main.css": b"p { background: url('../d.png') } @import 'e.css';",
        "a b.png": b"\x89PNG" * 10,
        "c.png": b"",
        "d.png": b"x" * 7,
        "css/e.css": b"",
        "late.json": b"{}",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    objects = {each["name"]: each for each in from_folder(tmp_path).objects}
    assert set(objects) == set(files)
    assert objects["css/main.css"]["at"] == f"{html.encode().index(b'<link')} B"
    assert objects["a b.png"]["at"] == f"{html.encode().index(b'<img')} B" == objects["c.png"]["at"]
    assert objects["d.png"]["referrer"] == "css/main.css" == objects["css/e.css"]["referrer"]
    assert "at" not in objects["d.png"] and "at" not in objects["late.json"]
    assert objects["index.html"]["compressed"] == f"{len(gzip.compress(files['index.html'], 6, mtime=0))} B"
    with pytest.raises(PageProblemError, match=r"start\.html: there is no such file"):
        from_folder(tmp_path, "start.html")
