"""Wrong inputs of new users: the place, the next step, a documented exit code, no work lost."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import airpath
from airpath.control import running
from support import ROOT, Command, Finished, plain_environment
from support.link import LinkCommand, python, until
from support.needs import UNPRIVILEGED, needs, without_privilege

DOCUMENTED = {
    int(code)
    for code in re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8"), re.MULTILINE)
}
"""The exit codes of docs/exit-codes.md."""

CAPTURE = ROOT / "tests" / "captures" / "clean-mobile.pcapng"


@dataclass(frozen=True)
class Wrong:
    """A wrong input, and what the command answers."""

    line: str
    """The arguments, as in a shell; `{capture}` is a capture, `\udce9` a byte that is not UTF-8."""
    err: tuple[str, ...] = ()
    """Texts that standard error contains: the place and the next step."""
    code: int = 2
    environment: dict[str, str] = field(default_factory=dict)
    out: tuple[str, ...] = ()
    """Texts that standard output contains."""


def wrong(name: str, line: str, *err: str, marks: Any = (), **values: Any) -> Any:
    """Return a row of the table; all errors of a link have an exit code of their own."""
    values = ({"code": 125} if line.startswith("link ") else {}) | values
    return pytest.param(Wrong(line, err, **values), id=name, marks=marks)


LATIN = {"PYTHONIOENCODING": "latin-1"}

NAMES = [
    wrong(f"preset-{common}", f"presets show {common}", code=0, out=(f"{preset}: ",))
    for common, preset in (
        ("gsm", "gsm-csd-9600"),
        ("gprs", "gprs-4+1"),
        ("2g", "gprs-4+1"),
        ("edge", "egprs-4+1"),
        ("umts", "umts-r99-384"),
        ("3g", "umts-r99-384"),
        ("hsdpa", "hsdpa-cat6"),
        ("hsupa", "hspa-cat10-eul"),
        ("hspa", "hspa-cat10-eul"),
        ("hspa+", "hspa-plus-21"),
        ("lte", "lte-10mhz"),
        ("4g", "lte-10mhz"),
        ("lte-m", "lte-cat-m1"),
        ("ltem", "lte-cat-m1"),
        ("nr", "nr-n78-100mhz-sa"),
        ("5g", "nr-n78-100mhz-sa"),
        ("nsa", "nr-n78-100mhz-nsa"),
        ("en-dc", "nr-n78-100mhz-nsa"),
    )
]

INPUTS = [
    # Tracebacks.
    wrong(
        "seed", "run small.toml --seed 99999999999999999999999", "--seed", "less than or equal to 9223372036854775807"
    ),
    wrong("seed-of-toml", f"run small.toml --seed {2**63}", "--seed", "less than or equal to 9223372036854775807"),
    wrong(
        "seed-of-study",
        "study run hsdpa-sim --seed 99999999999999999999999",
        "--seed",
        "less than or equal to 9223372036854775807",
    ),
    wrong("export-dash", "export kept -o - --format perfetto", "`-` is no output", "or /dev/stdout"),
    wrong("run-dash", "run small.toml --out -", "`-` is no output", "next: name a folder"),
    wrong("run-device", "run /dev/null", "/dev/null is no file but a pipe or a device", "save the scenario as a file"),
    wrong("scenario-not-utf-8", "run n\udce9.toml", "no scenario file 'n", "check the path"),
    wrong("scenario-name-not-utf-8", "run small\udce9.toml", code=0, out=("download",)),
    wrong("report-name-not-utf-8", "report kept -o o\udce9.html", code=0, out=("o",)),
    wrong("trace-name-not-utf-8", "trace {capture} -o o\udce9.html", "the report is in o", code=0),
    wrong("trace-latin-1", "trace {capture}", code=0, environment=LATIN, out=("192.0.2.1",)),
    wrong("trace-ascii", "trace {capture}", code=0, environment={"PYTHONIOENCODING": "ascii"}, out=("->",)),
    wrong("repeat-latin-1", "run small.toml --repeat 3", code=0, environment=LATIN, out=("download",)),
    wrong(
        "study-latin-1",
        "study run hsdpa-sim --only rtt --repeat 2",
        code=0,
        environment=LATIN,
        out=("yes agrees",),
    ),
    # Work done, then thrown away.
    wrong("study-report", "study run hsdpa-sim --report nope/x.html", "nope/x.html", "create the folder", code=3),
    wrong("trace-report", "trace {capture} -o nope/x.html", "nope/x.html", "create the folder", code=3),
    wrong("trace-xplot", "trace {capture} --xplot small.toml/plots", "small.toml", "part of the path", code=3),
    wrong("trace-har", "trace {capture} --har nope/x.har", "nope/x.har", "create the folder", code=3),
    wrong("trace-perfetto", "trace {capture} --perfetto kept", "kept", "name a file", code=3),
    wrong(
        "compare-report", "trace compare {capture} {capture} -o nope/x.html", "nope/x.html", "create the folder", code=3
    ),
    wrong("out-replaces", "run small.toml --out kept", "the earlier result in kept was replaced", code=0),
    # Errors that mislead or do not help.
    *NAMES,
    wrong("no-preset", "presets show gsmm", "no preset `gsmm`", "did you mean `gsm", "airpath presets list"),
    wrong("proxy-typo", "run small.toml --proxy i-tpc", "--set proxy.preset=i-tpc", "did you mean `i-tcp`?", "http"),
    wrong("proxy-file", "run small.toml --proxy ./none.toml", "none.toml` cannot be read", "check the path"),
    wrong("proxy-of-bearer", "run small.toml --set bearer.preset=i-tcp", '`proxy.preset = "i-tcp"`'),
    wrong("run-common-name", "run small.toml --set bearer.preset=gprs", code=0, out=("download",)),
    wrong("run-preset", "run hs-dsch-384", code=0, out=("download over hs-dsch-384", "100 kB")),
    wrong("run-gprs", "run gprs", code=0, out=("download over gprs-4+1", "100 kB")),
    wrong("run-environment", "run driving", "'driving' is a preset of kind environment", "presets list"),
    wrong("presets-environment", "presets show drivng", "did you mean the environment `driving`?"),
    wrong(
        "environment-key",
        "run lte --set bearer.conditions.environmnt=walking",
        "bearer.conditions.environmnt",
        "did you mean `environment`?",
    ),
    wrong(
        "environment-and-ci",
        "run lte --set bearer.conditions.environment=walking --set 'bearer.conditions.ci=3 dB'",
        "the environment has `cells`",
        "give either `environment` or `ci`",
    ),
    wrong(
        "environment-en-dc",
        "run nsa --set bearer.master.conditions.environment=walking",
        "bearer.master.conditions.environment",
        "did you mean `bearer.conditions.environment`?",
    ),
    wrong(
        "kept-tcp",
        "run kept --set tcp.congestion=reno",
        "no flow has this setting",
        "write `flow.tcp.congestion`",
    ),
    wrong("tcp-cc", "run small.toml --set tcp.cc=reno", code=0, out=("download",)),
    wrong(
        "tcp-congestion-control",
        "run small.toml --set tcp.congestion_control=reno",
        "at --set tcp.congestion_control=reno",
        "did you mean `congestion`?",
    ),
    wrong("short-congestion", "run small.toml --set tcp.congestion=cubic", code=0, out=("download",)),
    wrong("short-profile", "run small.toml --set tcp=windows-xp", code=0, out=("download",)),
    wrong("no-such-profile", "run small.toml --set tcp=windows-xq", "--set tcp=windows-xq", "`windows-xp`"),
    wrong("not-a-table", "run small.toml --set tcp.recovery=rack", "--set tcp.recovery=rack", "expected a table"),
    wrong("reno", "run small.toml --set tcp.congestion.algorithm=reno", code=0, out=("download",)),
    wrong("key-of-bearer", "run small.toml --set bearer.presett=1", "--set bearer.presett=1", "`preset`"),
    *(
        wrong(
            f"unit-{unit}",
            f"run small.toml --set 'fixed.rate=10 {unit}'",
            f"--set fixed.rate=10 {unit}: fixed.rate",
            f"did you mean `{right}`?",
        )
        for unit, right in (("mbps", "Mbit/s"), ("mbit", "Mbit/s"), ("KBPS", "kbit/s"))
    ),
    wrong("unit-of-other-tools", "run small.toml --set 'fixed.rate=10 Mbps'", code=0, out=("download",)),
    wrong("binary", f"run {sys.executable}", f"{sys.executable}:1: not UTF-8 text", "save the file as UTF-8"),
    wrong("latin-1-scenario", "run latin.toml", "latin.toml:2: not UTF-8 text", "save the file as UTF-8"),
    wrong(
        "replay-other-model",
        "replay kept --set bearer.preset=gprs-4+1",
        "at --set bearer.preset=gprs-4+1",
        'this scenario has `model = "hs-dsch-simple"`',
        "run the original scenario",
    ),
    wrong("trace-and-folder", "trace {capture} kept", "kept is a folder", "airpath trace compare"),
    wrong("report-no-folder", "report kept -o nonexistent/x.html", "nonexistent/x.html", "create the folder", code=3),
    wrong("report-to-folder", "report kept -o kept", "kept", "name a file", code=3),
    wrong("ctl-none", "ctl --link 1 outage='1 s'", "no link runs as process 1", "airpath link", code=1),
    wrong("run-common-name-typo", "run 3gg", "no scenario file '3gg'", "did you mean '3g'"),
    wrong("run-start-of-a-preset", "run lte10", "no scenario file 'lte10'", "did you mean 'lte-10mhz'"),
    wrong("run-address", "run localhost:3000", "no scenario file", "airpath presets list"),
    wrong("run-example", "run examples/hs-dsch.toml", "no scenario file", "in the repository, not in the package"),
    wrong("page-on", "page load http://server/ --on gprs -o x", "no such option --on", "did you mean '--link'?"),
    wrong("link-no-file", "link none.toml -- true", "no scenario file 'none.toml'", "check the path"),
    wrong("link-name-of-devtools", "link 'Slow 3G' -- true", "no preset `Slow 3G`", "did you mean `3g`?"),
    wrong("host-port", "link wired --host-port localhost:80 -- true", "not a port", "number alone"),
    *(
        wrong(f"elsewhere-{key}", f"run small.toml --set {key}=1", f"at --set {key}=1", f"did you mean `{right}`?")
        for key, right in (
            ("congestion", "tcp.congestion"),
            ("cc", "tcp.congestion"),
            ("queue", "fixed.queue.packets"),
            ("size", "flow.bytes"),
            ("preset", "bearer.preset"),
            ("count", "mobile.count"),
            ("mss", "tcp.maximum_segment_size"),
            ("flow.cc", "flow.0.tcp.congestion"),
            ("rate", "fixed.rate"),
            ("bandwidth", "fixed.rate"),
            ("loss", "fixed.loss"),
            ("latency", "fixed.delay"),
            ("bearer.loss", "bler"),
        )
    ),
    wrong("count-of-mobiles", "run small.toml --set mobile.count=3", code=0, out=("download-2",)),
    wrong(
        "two-links",
        "page load static-site --link 3g --link hsdpa -o x",
        "--link: given twice",
        "give it once; a command loads a page over one link",
    ),
    wrong("two-repeats", "run gprs --repeat 2 --repeat 3", "--repeat: given twice", "next: give it once"),
    wrong("two-outs", "report kept -o a.html --out b.html", "--out: given twice"),
    wrong("two-formats", "presets list --format json --format text", "--format: given twice"),
    wrong("two-proxies", "run gprs --proxy --proxy i-tcp", "--proxy: given twice"),
    wrong("two-sets", "run small.toml --set seed=2 --set bearer.bler=0.1", code=0, out=("download",)),
    wrong("report-image", "report kept -o x.png", "x.png: a report is HTML", "name it x.html", "airpath plot"),
    wrong("report-table", "report kept -o x.csv", "x.csv: a report is HTML", "`airpath export DIR --format csv"),
    wrong("report-stdout", "report kept -o -", "not written to standard output", "name it report.html"),
    wrong("run-report-json", "run gprs --report o.json", "o.json: a report is HTML", "`--format csv > FILE`"),
    wrong(
        "trace-table", "trace {capture} -o t.csv", "t.csv: a report is HTML", "name it t.html; `--format csv > FILE`"
    ),
    wrong("trace-new-capture", "trace {capture} -o new.pcap", "new.pcap: a report is HTML", "name it new.html"),
    wrong("trace-stdout", "trace {capture} -o -", "not written to standard output", "`--format csv > FILE`"),
    wrong("compare-table", "trace compare {capture} {capture} -o t.csv", "t.csv: a report is HTML", "--format csv"),
    wrong(
        "study-report-json", "study run hsdpa-sim --report o.json", "o.json: a report is HTML", "--format json > FILE"
    ),
    wrong("report-capture", "report c.pcapng", "not a result folder", "airpath trace c.pcapng"),
    wrong("trace-radio", "trace c.pcapng --radio none.csv", "none.csv", "next: check the path"),
    # Options of other tools and commands.
    wrong("loss", "run small.toml --loss 0.01", "--loss", "did you mean '--set fixed.loss=0.01'?"),
    wrong("second", "run lte --second wifi-n", "did you mean '--set second_bearer=wifi-n'?"),
    wrong("quic", "run lte --quic", "did you mean '--set flow.transport=quic-quinn'?"),
    wrong("rate", "link gprs --rate 1mbit -- true", "did you mean `--set fixed.rate='1 Mbit/s'`?"),
    wrong("count", "run small.toml -n 5", "did you mean '--repeat'?"),
    wrong("runs-of-link", "link gprs --runs 5 -- true", "did you mean '--repeat'?"),
    wrong("repeat-of-page", "page load static-site --repeat 3", "did you mean '--runs'?"),
    wrong("port", "link gprs --port 3000 -- true", "did you mean '--host-port'?"),
    wrong("json", "trace {capture} --json", "did you mean '--format json'?"),
    wrong("stream", "trace {capture} --stream 0", "did you mean '--flow'?"),
    wrong("no-dashes", "link gprs curl -s http://server/", "no such option -s", "after `--`"),
    # What is missing in an input, or is something else.
    wrong("plot-without-log", "plot bare --what window -o x.svg", "has no 'tcp' table", "without --no-log"),
    wrong("radio-log", "trace {capture} --radio {capture}", "not UTF-8 text", "clean-mobile.pcapng:"),
    wrong("pair-in-two-words", "run small.toml --set bearer.bler 0.1", "write --set bearer.bler=0.1"),
    wrong("sweep-none", "sweep none.toml --out x", "none.toml: No such file", "next: check the path"),
    wrong("rules-none", "compare kept kept --rules none.toml", "none.toml: No such file", "next: check the path"),
    wrong("undecided", "compare kept kept --fail-undecided", "--fail-undecided needs a rule", "add --fail-if RULE"),
    wrong("rules-as-result", "compare limits.toml kept", "a file of rules, not a result", "--rules limits.toml"),
    wrong("no-base", "compare kept --rules limits.toml", "kept is the only one", "`airpath compare BASE kept`"),
    wrong("rule", "compare kept kept --fail-if 'duration_s >> 5'", "expected at character 13, '> 5'", "write it as in"),
    wrong("rule-figure", "compare kept kept --fail-if 'stall_s > 5 %'", "no figure 'stall_s'", "there are bytes"),
    wrong("compare-figure", "compare kept kept --figure duration", "did you mean 'duration_s'?", "kept has"),
    wrong("measure-host", "measure ping none.invalid", "cannot find the host", "next: check the name", code=1),
    wrong("measure-url", "measure bulk http://a.invalid/", "host http://a.invalid/", "the host alone", code=1),
    wrong("measure-port", "measure ping 127.0.0.1:9", "Connection refused", "next: start `airpath measure", code=1),
    wrong("page-scheme", "page load htp://server/ --link wired -o x", "not a URL", "name a page, a file"),
    # A file or a name where a command, or something else, belongs.
    wrong("capture-alone", "{capture}", "no such command", "`airpath trace "),
    wrong("scenario-alone", "small.toml", "no such command", "`airpath run small.toml`"),
    wrong("plan-alone", "plan.toml", "no such command", "`airpath sweep plan.toml --out DIR`"),
    wrong("result-alone", "kept", "no such command", "`airpath report kept`"),
    wrong("preset-alone", "gprs", "no such command", "`airpath run gprs`"),
    wrong("environment-alone", "driving", "no such command", "`airpath presets show driving`"),
    wrong("presets-preset", "presets gprs", "no such command", "`airpath presets show gprs`"),
    wrong("page-name", "page static-site", "no such command", "`airpath page show static-site`"),
    wrong("study-name", "study gsm-csd", "no such command", "`airpath study run gsm-csd`"),
    *(
        wrong(
            f"{line.split()[0]}-capture-file", line, "is a file, not a result folder", "`airpath trace` reads captures"
        )
        for line in ("plot {capture} --what window -o x.svg", "export {capture} --format csv -o x")
    ),
    wrong("sweep-capture", "sweep {capture} --out x", "is a capture, not a plan", "`airpath trace "),
    wrong("link-capture", "link {capture} -- true", "is a capture, not a scenario", "`airpath trace "),
    wrong("run-capture", "run {capture}", "is a capture, not a scenario", "`airpath trace "),
    wrong("trace-scenario", "trace small.toml", "small.toml is a TOML file", "airpath run small.toml --out DIR"),
    wrong("trace-preset", "trace gprs", "gprs: No such file", "`airpath run gprs`"),
    wrong("replay-capture", "replay {capture}", "is a file, not a result folder", "name the folder"),
    wrong("report-scenario", "report small.toml", "a file, not a result folder", "`airpath run small.toml`"),
    wrong("run-plan", "run plan.toml", "plan.toml is a plan of a sweep", "airpath sweep plan.toml --out DIR"),
    wrong("run-result", "run kept", code=0, out=("download",)),
    wrong("sweep-scenario", "sweep small.toml --out x", "small.toml is a scenario, not a plan", "airpath run"),
    wrong("sweep-folder", "sweep kept --out x", "kept is a folder", "the file of the plan"),
    wrong("vary-interval", "run small.toml --vary fixed.loss=0.1:0.5", "is not a value", "from = 0.1, to = 0.5"),
    wrong("set-no-such-name", "run small.toml --set flow.nosuch.bytes=5kB", "unknown key", "flow.0.nosuch"),
    wrong("vary-no-value", "run small.toml --vary fixed.loss", "next: write it as in --vary bearer"),
    wrong("plot-none", "plot kept -o x.pdf", "--what is missing", "time-sequence"),
    wrong("plot-other-name", "plot kept --what cwnd -o x.pdf", "no figure 'cwnd'; did you mean 'window'?", "queue"),
    wrong("plot-figure-of-nothing", "plot none --figure duration_s -o x.pdf", "none: no such result folder"),
    wrong(
        "radio-log-without-columns",
        "trace {capture} --radio states.csv",
        "states.csv: the radio log has no column `begin`",
        "--radio-columns",
    ),
    wrong("plot-figure-of-run", "plot kept --figure duration_s -o x.pdf", "for the folder of a sweep", "--what"),
    wrong("plot-labels", "plot kept --what window --label a --label b -o x.pdf", "2 labels for 1 result", "once"),
    wrong("page-address", "page load localhost:3000 --link wired -o x", "is no page", "http://localhost:3000"),
    wrong(
        "page-localhost", "page load http://localhost:3000/ --link wired -o x", "the mobile itself", "--host-port 3000"
    ),
    wrong(
        "page-host", "page load http://mine:80/ --host-port 80 --link wired -o x", "host `server`", "http://server:80/"
    ),
    wrong("page-folder", "page load . --link wired -o x", "without a recorded site", "--serve 'python3 -m http.server"),
    wrong("page-html", "page load a/index.html --link wired -o x", "an HTML file", "http://server:8000/index.html"),
    wrong("page-host-port", "page load static-site --host-port 80 --link wired -o x", "needs a URL", "name a URL"),
    # A value of another type, or without its unit.
    wrong("bearer-text", "run small.toml --set bearer=gprs --seed 3", code=0, out=("seed 3", "download")),
    wrong("bearer-text-typo", "run small.toml --set bearer=gpsr", "at --set bearer=gpsr", "did you mean `gprs`?"),
    wrong("proxy-text", "run small.toml --set proxy=i-tcp", code=0, out=("download",)),
    wrong("unit-M", "run small.toml --set fixed.rate=10M", "`M` is not a unit", "did you mean `Mbit/s`?"),
    wrong("unit-of-size", "run small.toml --set flow.0.bytes=10k", "did you mean `kB`?"),
    wrong("no-unit", "run small.toml --set fixed.rate=10", "integer `10`", 'next: add a unit, as in "10 kbit/s"'),
    wrong("no-unit-of-time", "run small.toml --set duration=60", 'next: add a unit, as in "60 s" or "60 ms"'),
    wrong("no-unit-of-size", "run small.toml --set flow.0.bytes=1000000", 'next: add a unit, as in "1000000 B"'),
    wrong("no-unit-of-rate", "run small.toml --set fixed.rate=9600", 'next: add a unit, as in "9600 bit/s"'),
    wrong("no-unit-of-option", "measure ping ::1 --timeout 2", "`2` has no unit", "as in `2 s` or `2 ms`"),
    wrong("seed-text", "run small.toml --seed abc", "--seed abc: not a whole number", "as in --seed 3"),
    wrong("repeat-text", "link gprs --repeat 1.5 -- true", "--repeat 1.5: not a whole number", "as in --repeat 3"),
    wrong(
        "timeout-unit",
        "page load static-site --link 3g --timeout 2s -o x",
        "--timeout 2s: not a number",
        "give the seconds without a unit, as in --timeout 2",
    ),
    wrong(
        "page-preset",
        "page load http://example.org/ 3g -o x",
        "unexpected argument '3g'",
        "name the link by its option: --link 3g",
    ),
    wrong("run-url", "run http://example.org/", "is a URL", "`airpath page load http://example.org/ --link 3g"),
    wrong("run-url-toml", "run http://example.org/a.toml", "is a URL", "`curl -O http://example.org/a.toml`"),
    wrong("link-url", "link http://example.org/ -- true", "is a URL, not a link", "link gprs -- curl http"),
    wrong(
        "axis-step",
        "sweep step.toml --out x",
        "step.toml:4: axes.fixed.delay: 'fixed.delay' has a step",
        "write the number of values: number = 5",
    ),
    *(
        wrong(
            f"{command}-folder-of-{folder}",
            f"{command} {folder}{' -- true' if command == 'link' else ''}",
            f"{folder} is {kind}, not a {'scenario' if command in ('run', 'link') else 'result'}",
            next_step,
        )
        for folder, kind, next_step in (
            ("swept", "the folder of a sweep", "next: `airpath report swept` draws it"),
            ("captures", "a folder of captures", "next: name a file: `airpath trace captures/c.pcapng`"),
            ("results", "a folder of results", "next: name one of them, as results/one"),
        )
        for command in ("run", "replay", "trace", "link")
    ),
    wrong("link-result", "link kept -- true", "kept is a result", "name its scenario: kept/scenario.toml"),
    wrong(
        "queue-number",
        "run small.toml --set fixed.queue=100",
        "set its keys",
        "`fixed.queue.KEY = VALUE`: discipline, packets",
    ),
    wrong("log-false", "run small.toml --set log=false", "`log.KEY = VALUE`: packets, tcp, radio, app"),
    wrong("ecn-yes", "run small.toml --set tcp.ecn=yes", "expected `true` or `false`", "next: write `true`"),
    wrong("log-no", "run small.toml --set log.tcp=no", "expected `true` or `false`", "next: write `false`"),
    wrong("capital-name", "run small.toml --set tcp.congestion=BBR", "did you mean `bbr`?"),
    wrong("format", "run small.toml --set format=2", "at --set format=2", "this version reads format 1"),
    wrong("no-list", "run small.toml --set change.0.at=5s", "has no `[[change]]`", "at --set change.0.at=5s"),
    # Other kinds of inputs.
    wrong("import-toml", "page import small.toml", "a TOML file, not a HAR", "`airpath run small.toml`"),
    wrong("import-capture", "page import c.pcapng --out x", "a capture, not a HAR", "`airpath trace c.pcapng`"),
    wrong("import-url", "page import https://a.invalid/b", "a URL, not a file", "page record https://a.invalid/b -o"),
    wrong("show-scenario", "presets show small.toml", "a scenario, not a preset", "`airpath run small.toml`"),
    wrong("run-url", "run https://a.invalid/s.toml", "a URL, not a file", "`curl -O https://a.invalid/s.toml`"),
    wrong("run-summary", "run kept/summary.json", "the summary of a result", "`airpath run kept`"),
    wrong("proxy-none", "proxy none.toml", "no such command 'none.toml'", "`airpath proxy run none.toml`"),
    wrong("plot-no-format", "plot kept --what window -o x", "'x' has no format", "ends in .pdf"),
    wrong("replay-senders", "replay kept --set tcp.congestion=bbr", "does not change a replay", "`airpath run`"),
    # A command without a part of it, or of another tool.
    wrong("no-link", "link -- true", "the link is missing before `--`", "`airpath link gprs -- true`"),
    wrong("no-link-of-two", "link -- curl http://a/", "the link is missing", "`airpath link gprs -- curl http://a/`"),
    wrong(
        "serve-words",
        "link gprs --serve python3 -m http.server --no-status -- true",
        "is 3 words",
        "--serve 'python3 -m http.server'",
    ),
    wrong("serve-before-link", "link --serve ./a 8000 gprs -- true", "`./a 8000` is 2 words", "--serve './a 8000'"),
    wrong(
        "command-in-quotes",
        "link gprs -- 'ls -l'",
        "ls -l: No such file",
        "without quotes around them: -- ls -l",
        code=127,
    ),
    wrong("no-command", "link gprs", "the command is missing", "`airpath link gprs -- curl"),
    wrong("no-program", "link gprs -- no-such-program", "no-such-program: No such file", "after `--`", code=127),
    wrong("serve-nothing", "link gprs --serve -- true", "--serve has no command", "http.server 8000'"),
    wrong("ctl-word", "ctl rate", "airpath ctl rate: not of the form K=V"),
    wrong("version", "version", "no such command 'version'", "next: `airpath --version`"),
    wrong("help", "help run", "no such command 'help'", "next: `airpath --help`"),
    wrong("simulate", "simulate small.toml", "no such command 'simulate'", "`airpath run`"),
    wrong("option-without-value", "run small.toml --set", "requires an argument", "`airpath run --help`"),
    wrong("seed-of-replay", "replay kept --seed 3", "did you mean '--set seed=2'?"),
    wrong("port-of-trace", "trace {capture} --port 80", "did you mean '--flow :80'?"),
    wrong("jobs-of-sweep", "sweep plan.toml -j 4 --out x", "did you mean '--workers'?"),
    wrong("link-no-preset", "link gprss -- true", "no preset `gprss`", "at command line, bearer.preset"),
]


def test_an_error_in_an_override_names_the_option(airpath_command: Command) -> None:
    """Also of a key that the scenario has, and without a file."""
    failed = airpath_command("run", "gprs", "--set", 'mobile=[{name="a"},{name="a"}]')
    assert failed.code == 2
    assert "two groups of mobiles are called `a`\n  at --set mobile: mobile.name" in failed.err


@pytest.fixture
def files(airpath_command: Command, scenario: Callable[..., Path]) -> Path:
    """The folder of the command: scenarios, and the results `kept` and `other`."""
    path = scenario()
    folder = path.parent
    (folder / "plan.toml").write_text('format = 1\nscenario = "small.toml"\n[axes]\nbearer.bler = [0.1]\n')
    (folder / "states.csv").write_text("time,user,aspect,name\n0,0,mode,idle\n")
    (folder / "limits.toml").write_text('format = 1\nfail-if = ["duration_s p95 > 5 %"]\n')
    shutil.copy(CAPTURE, folder / "c.pcapng")
    step = '{ from = "10 ms", to = "50 ms", step = "10 ms" }'
    (folder / "step.toml").write_text(f'format = 1\nscenario = "small.toml"\n[axes]\nfixed.delay = {step}\n')
    for name, file in (("swept", "sweep.json"), ("captures", "c.pcapng"), ("results", "one/summary.json")):
        (folder / name / file).parent.mkdir(parents=True)
        (folder / name / file).write_bytes(CAPTURE.read_bytes() if name == "captures" else b"{}")
    (folder / "latin.toml").write_bytes('format = 1\nname = "é"\n'.encode("latin-1"))
    (folder / os.fsdecode(b"small\xe9.toml")).write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize("case", INPUTS)
def test_a_wrong_input(airpath_command: Command, files: Path, case: Wrong) -> None:
    arguments = [word.format(capture=CAPTURE) for word in shlex.split(case.line)]
    for result in ("kept", "other"):
        if any(word.partition("/")[0] == result for word in arguments):
            assert airpath_command("run", "small.toml", "--out", result).code == 0
    if "bare" in arguments:
        assert airpath_command("run", "small.toml", "--out", "bare", "--no-log").code == 0
    _check(airpath_command(*arguments, timeout=120, **case.environment), case)


def _check(done: Finished, case: Wrong) -> None:
    assert "Traceback" not in done.err, done.err
    assert "struct " not in done.err
    assert "panicked" not in done.err
    assert done.code in DOCUMENTED
    assert done.code == case.code, done.err
    for words in case.err:
        assert words in done.err
    for words in case.out:
        assert words in done.out
    if done.code not in (0, 130, 141):
        assert done.err.startswith("error: ")
        assert "\n  next: " in done.err or "did you mean" in done.err


CLOSED = [
    wrong("run", "run {closed}", "closed/x"),
    wrong("run-output", "run gprs --out {closed}", "closed/x.toml cannot be written", "permissions", code=3),
    wrong("vary-output", "run gprs --vary fixed.loss=0 --out {closed}", "closed/x.toml", "permissions"),
    wrong("sweep-output", "sweep {plan} --out {closed}", "closed/x.toml", "permissions"),
    wrong("study-output", "study run hsdpa-sim --only rtt --out {closed}", "closed/x.toml", "permissions"),
    wrong("replay-output", "replay {kept} --out {closed}", "closed/x.toml cannot be written", "permissions", code=3),
    wrong("plot-output", "plot {kept} --what window -o {closed}", "closed/x.toml cannot", "permissions", code=3),
    wrong("link-output", "link wired --serve true -o {closed} -- true", "x.toml cannot", "permissions"),
    wrong("report", "report {closed} -o /dev/null", "closed/x"),
    wrong(
        "report-output",
        "report kept -o {closed}.html",
        "closed/x.toml.html cannot be written",
        "check the permissions",
        code=3,
    ),
    wrong("trace", "trace {closed}", "closed/x"),
    wrong(
        "trace-output",
        "trace {capture} -o {closed}.html",
        "closed/x.toml.html cannot be written",
        "permissions",
        code=3,
    ),
    wrong("link", "link {closed} -- true", "closed/x"),
    wrong("presets", "presets show {closed}", "closed/x", "permissions"),
    wrong("export-output", "export kept -o {closed} --format perfetto", "cannot be written", "permissions", code=3),
    wrong("link-record", "link wired --serve true --record {closed} -- true", "x.toml.down", "permissions"),
]


@pytest.mark.parametrize("case", CLOSED)
def test_a_folder_of_another_user(tmp_path: Path, files: Path, case: Wrong) -> None:
    if "{kept}" in case.line:
        airpath.run(files / "small.toml", out=tmp_path / "kept")
    (tmp_path / "closed").mkdir(mode=0)
    if os.geteuid() == 0:
        os.chown(tmp_path / "closed", UNPRIVILEGED, UNPRIVILEGED)
    paths = {"plan": files / "plan.toml", "kept": tmp_path / "kept"}
    arguments = case.line.format(closed=tmp_path / "closed" / "x.toml", capture=CAPTURE, **paths).split()
    line = [*without_privilege(), *Command(tmp_path).line(*arguments)]
    done = subprocess.run(line, cwd="/", env=plain_environment(), capture_output=True, text=True, check=False)
    assert "ermission denied" in done.stderr
    _check(Finished(done.returncode, done.stdout, done.stderr), case)


@needs("full-device")
@pytest.mark.parametrize(
    "line", [["trace", CAPTURE], ["presets", "show", "driving"], ["study", "list"]], ids=lambda line: line[0]
)
def test_a_full_standard_output(airpath_command: Command, line: list[str]) -> None:
    for unbuffered in ("", "1"):
        environment = plain_environment() | {"PYTHONUNBUFFERED": unbuffered}
        with Path("/dev/full").open("w") as full:
            process = subprocess.run(
                airpath_command.line(*line),
                env=environment,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        done = Finished(process.returncode, "", process.stderr)
        _check(done, Wrong("", ("standard output cannot be written", "free disk space"), code=3))


@pytest.mark.parametrize("line", [["run", "small.toml", "--repeat", "500"], ["trace", CAPTURE]], ids=["run", "trace"])
def test_a_closed_pipe(airpath_command: Command, files: Path, line: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    words = airpath_command.line(*line, "--format", "jsonl")
    process = subprocess.run(words, cwd=files, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    _check(Finished(process.returncode, "", process.stderr), Wrong("", code=141))
    assert process.stderr == ""


FULL = [
    "report kept -o {disk}/x.html",
    "trace {capture} -o {disk}/x.html",
    "trace compare {capture} {capture} -o {disk}/x.html",
    "export kept -o {disk}/x --format perfetto",
    "compare kept kept --markdown {disk}/x",
    "plot kept --what window -o {disk}/x.png",
]


@pytest.mark.parametrize("line", FULL, ids=lambda line: line.partition(" -")[0].split()[0])
def test_a_full_disk_keeps_the_earlier_file(
    airpath_command: Command, files: Path, small_disk: Path, need: Callable[..., str], line: str
) -> None:
    if "plot" in line:
        need("chromium")
    assert airpath_command("run", "small.toml", "--out", "kept").code == 0
    earlier = small_disk / next(name for name in ("x.png", "x.html", "x") if name in line)
    # Only a report may be replaced by a report.
    text = '<meta name="generator" content="airpath">' if earlier.suffix == ".html" else "earlier"
    earlier.write_text(text)
    _fill(small_disk)
    done = airpath_command(*line.format(disk=small_disk, capture=CAPTURE).split(), timeout=120)
    _check(done, Wrong("", (f"{earlier} cannot be written: No space left", "free disk space"), code=3))
    assert sorted(each.name for each in small_disk.iterdir()) == ["filler", earlier.name]
    assert earlier.read_text() == text


def _fill(disk: Path) -> None:
    """Write a file of all the space that is left."""
    with pytest.raises(OSError, match="No space left"), (disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))


FOLDERS = [
    pytest.param("run small.toml --out {out}", 3, id="run"),
    pytest.param("replay kept --out {out}", 3, id="replay"),
    pytest.param("sweep plan.toml --out {out}", 3, id="sweep"),
    pytest.param("run small.toml --vary fixed.loss=0 --out {out}", 3, id="vary"),
    pytest.param("study run hsdpa-sim --only rtt --out {out}", 3, id="study"),
    pytest.param("export kept --format csv -o {out}", 3, id="export"),
    pytest.param("link wired --serve {server} -o {out} -- true", 125, id="link"),
]


@pytest.mark.parametrize("is_read_only", [False, True], ids=["full", "read-only"])
@pytest.mark.parametrize(("line", "code"), FOLDERS)
def test_a_folder_without_room_keeps_the_earlier_result(
    airpath_command: Command, files: Path, small_disk: Path, line: str, code: int, is_read_only: bool
) -> None:
    """A result that is there stays, byte for byte; the message has the folder and what to do."""
    assert airpath_command("run", "small.toml", "--out", "kept").code == 0
    out = small_disk / "out"
    if line.startswith(("run small.toml --out", "replay", "link")):
        assert airpath_command("run", "small.toml", "--out", out, "--no-log").code == 0
    _fill(small_disk)
    if is_read_only:
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    before = {path: path.read_bytes() for path in small_disk.rglob("*") if path.is_file()}
    words = shlex.split(line.format(out=out, server=shlex.quote(shlex.join(python("listen.py")))))
    done = airpath_command(*words, timeout=120)
    advice = "the file system is read-only" if is_read_only else "free disk space"
    reason = "Read-only file system" if is_read_only else "No space left on device"
    has_tasks = line.startswith(("sweep", "study")) or "--vary" in line
    _check(done, Wrong("", (str(out), reason, advice), code=2 if is_read_only and has_tasks else code))
    assert {path: path.read_bytes() for path in before} == before


def test_ctrl_c_prints_the_complete_experiments(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from airpath.cli import main
    from airpath.run import execute as run_once
    from airpath.study import simulation

    execute, calls = run_once, []

    def interrupted(*arguments: Any, **named: Any) -> Any:
        calls.append(arguments)
        # The first experiment has four cases.
        if len(calls) == 5:
            raise KeyboardInterrupt
        return execute(*arguments, **named)

    monkeypatch.setattr(simulation, "execute", interrupted)
    code = main(["study", "run", "hsdpa-sim", "--only", "rtt,utilisation-20kB", "--repeat", "2", "--format", "json"])
    captured = capsys.readouterr()
    done = Finished(code, captured.out, captured.err)
    _check(done, Wrong("", ("interrupted",), code=130))
    assert not done.json["complete"]
    assert {row["experiment"] for row in done.json["rows"]} == {"rtt"}


def test_wrong_arguments_in_python(files: Path) -> None:
    path = files / "small.toml"
    with pytest.raises(TypeError, match=r"set is a str; write a dictionary, as in \{'bearer.bler': 0.1\}"):
        airpath.run(path, set="bearer.bler=0.1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="repeat is 0; a run has at least one repetition"):
        airpath.run(path, repeat=0)
    with pytest.raises(ValueError, match=f"seed is {2**63}; select one from 0 to {2**63 - 1}"):
        airpath.run(path, seed=2**63)
    with pytest.raises(TypeError, match=r"the values of 'fixed.loss' are a float; write lists of values"):
        airpath.run(path, vary={"fixed.loss": 0.1})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="repeat is a float; give a whole number"):
        airpath.run(path, repeat=2.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="repeat is 0; a run has at least one repetition"):
        airpath.run(path, vary={"bearer.bler": [0.0]}, repeat=0)
    swept = airpath.run(path, vary={"bearer.bler": [0.0]})
    with pytest.raises(KeyError, match="no figure 'duration'; did you mean 'duration_s'"):
        swept.means("duration")
    with pytest.raises(KeyError, match="no figure 'duration'; did you mean 'duration_s'"):
        airpath.run(path).means("duration")
    with pytest.raises(airpath.ScenarioError, match="override blr=1: blr: unknown key"):
        airpath.run(path, set={"blr": 1})


def test_values_of_numpy_are_accepted(files: Path) -> None:
    path = files / "small.toml"
    plain = airpath.run(path, set={"bearer.bler": 0.25, "tcp.timestamps": False, "seed": 9}, repeat=2)
    values = {"bearer.bler": np.float64(0.25), "tcp.timestamps": np.bool_(False), "seed": np.int64(9)}
    assert airpath.run(path, set=values, repeat=np.int64(2)).flows.equals(plain.flows)  # type: ignore[arg-type]
    axes = {"bearer.bler": np.linspace(0, 0.5, 3), "tcp.recovery.duplicate_threshold": np.array([1, 2])}
    swept = airpath.run(path, vary=axes, seed=np.int64(9))  # type: ignore[arg-type]
    assert swept.plan["cases"] == [[bler, window] for bler in (0.0, 0.25, 0.5) for window in (1, 2)]
    assert [swept.flows[key].dtype.is_float() for key in axes] == [True, False]
    with pytest.raises(airpath.PlanError, match="a value that is no number, text or truth value"):
        airpath.run(path, vary={"bearer.bler": np.zeros((2, 2))})
    with pytest.raises(TypeError, match=r"the values of 'bearer\.bler' are a float"):
        airpath.run(path, vary={"bearer.bler": np.float64(0.1)})  # type: ignore[dict-item]


def test_a_figure_takes_the_path_of_a_result(files: Path) -> None:
    from airpath import plot

    folder = files / "kept"
    result = airpath.run(files / "small.toml", out=folder)
    drawn = [plot.window(each).to_json() for each in (result, folder, str(folder))]
    assert drawn[0] == drawn[1] == drawn[2]
    assert plot.throughput([result, str(folder)]).data
    with pytest.raises(TypeError, match=r"a int is no result; give one of airpath\.run, or the path of its folder"):
        plot.window(7)  # type: ignore[arg-type]
    with pytest.raises(airpath.UnreadableResultError, match="no such result folder"):
        plot.window("nowhere")


LINKS = [
    wrong("link-gprs", "link gprs --serve {server} -- true", code=0),
    wrong(
        "link-common-name",
        "link wired --set bearer.preset=umts --serve {server} -- true",
        code=0,
    ),
    wrong(
        "link-congestion-control",
        "link wired --sysctl net.ipv4.tcp_congestion_control=nonesuch --serve {server} -- true",
        "cannot be set to `nonesuch`",
        "can be set in links",
        "next: select one",
    ),
    wrong(
        "link-loopback",
        "link wired --serve {loopback} -- true",
        "the server listens at 127.0.0.1 only",
        "let it listen at 0.0.0.0",
        code=0,
    ),
]


@pytest.mark.parametrize("case", LINKS)
def test_a_wrong_input_of_a_link(link: LinkCommand, files: Path, case: Wrong) -> None:
    loopback = python("import socket, time; at = socket.create_server(('127.0.0.1', 8000)); time.sleep(100)")
    servers = {"server": shlex.join(python("listen.py")), "loopback": shlex.join(loopback)}
    command = Command(files)
    arguments = [word.format(**servers) for word in shlex.split(case.line)]
    if "kept" in arguments:
        assert command("run", "small.toml", "--out", "kept").code == 0
    _check(command(*arguments), case)


def test_a_change_of_a_link(link: LinkCommand) -> None:
    command = Command(link.folder)
    with link.started("sleep", "100") as process:
        until(lambda: process.pid in running(), "the control socket")
        done = command("ctl", "--link", str(process.pid), "rate=128kbit")
        _check(done, Wrong("", ("`kbit` is not a unit", "did you mean `kbit/s`?"), code=2))


def test_a_link_that_waits_for_its_server(link: LinkCommand) -> None:
    with link.started("true", serve="exec sleep 100") as process:
        until(lambda: process.pid in running(), "the control socket")
        done = Command(link.folder)("ctl", "--link", str(process.pid))
        _check(done, Wrong("", ("is not ready yet: it waits for its server", "try again"), code=1))


def test_a_closed_pipe_ends_parquet_as_documented(airpath_command: Command) -> None:
    line = shlex.join(map(str, airpath_command.line("trace", CAPTURE, "--format", "parquet")))
    # More than a pipe holds would block; less is lost with the pipe.
    done = subprocess.run(
        ["bash", "-c", f"{line} | true; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=True
    )
    assert "Traceback" not in done.stderr
    assert int(done.stdout) in (0, 141)


API = [
    ("airpath.run(3)", TypeError, "scenario has type int; give a path"),
    ("airpath.run('swept')", IsADirectoryError, "swept is the folder of a sweep, not a scenario; `airpath report"),
    ("airpath.load('captures')", airpath.UnreadableResultError, "captures is a folder of captures, not a result"),
    ("airpath.replay('kept', out='other')", FileExistsError, "other has a result of `airpath run`: nothing was run"),
    ("airpath.run('small.toml', set={1: 2})", TypeError, "a key of set has type int"),
    ("airpath.run('small.toml', log='packets')", TypeError, "log is a str; give True or False"),
    ("airpath.run('small.toml', threads=0)", ValueError, "threads is 0"),
    ("airpath.link('gprs', [])", ValueError, "command is a list: the program and its arguments"),
    ("airpath.link('gprs', 'curl http://server/')", ValueError, "command is a list"),
    ("airpath.compare('kept')", airpath.IncomparableError, "kept is the only result"),
    ("airpath.compare('kept', 'kept', figures=['duration'])", airpath.IncomparableError, "did you mean 'duration_s'?"),
    ("airpath.replay('kept', set={'tcp': 'linux-2.4'})", airpath.UnreadableResultError, "does not change a replay"),
    ("airpath.sweep('plan.toml', executor='dask')", TypeError, "executor has type str"),
    ("airpath.sweep('plan.toml', workers=0)", ValueError, "workers is 0"),
    ("airpath.load('kept').columns('flow')", KeyError, "there are flows, links"),
]


@pytest.mark.parametrize(("call", "error", "message"), API, ids=[call for call, *_ in API])
def test_a_wrong_call(
    files: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: type[Exception], message: str
) -> None:
    monkeypatch.chdir(files)
    for result in ("kept", "other"):
        if result in call:
            airpath.run("small.toml", out=result)
    with pytest.raises(error, match=re.escape(message)):
        eval(call, {"airpath": airpath})
