"""The first sentences of a report: the main result."""

from collections.abc import Sequence
from statistics import fmean

import polars as pl

from airpath.plot.distribution import ENOUGH
from airpath.plot.selection import Drawn
from airpath.quantities import count, number_of, rate, score, seconds, share, size
from airpath.report import metrics
from airpath.report.metrics import COMPLETION, GOODPUT, GOODPUT_IN_ALL, Metric
from airpath.result import Result

_FEWEST_TIMES = 2.0
"""From this factor on a distance is a factor, below it a share."""


def verdict(runs: Sequence[Drawn]) -> list[str]:
    """Return the sentences of the verdict, the most important first."""
    notes = [*_stated_repetitions(runs), *filter(None, map(_invalid, runs))]
    if len(runs) == 1:
        return [*_of_one(runs[0].result), *notes]
    if all(metrics.transfers(run.result).height for run in runs):
        return [_ranking(runs), *notes]
    return [f"{len(runs)} runs side by side.", *notes]


def _invalid(run: Drawn) -> str:
    """Return a warning about a link that was too late or lost packets before it, or nothing."""
    emulation = run.result.summary.get("emulation") or {}
    lateness = emulation.get("lateness") or {}
    if lateness.get("within_budget", True) and not emulation.get("overruns"):
        return ""
    late = "the kernel dropped packets before the link"
    if not lateness.get("within_budget", True):
        budget, p99 = seconds(lateness["budget_s"]), seconds(lateness["p99_s"])
        late = f"the host was too busy, so times may be wrong by {p99}, more than the {budget} that the link allows"
    return f"The run {run.label} is invalid: {late}."


def _of_one(result: Result) -> list[str]:
    """Return the sentences of one run, of each kind of flows apart."""
    flows, videos, calls = metrics.transfers(result), metrics.videos(result), metrics.calls(result)
    sentences = _of_transfers(result, flows) if flows.height else []
    sentences += _of_videos(videos) if videos.height else []
    sentences += _of_calls(calls) if calls.height else []
    return sentences + _of_probes(result) or ["No flow was run."]


def _of_transfers(result: Result, flows: pl.DataFrame) -> list[str]:
    finished = flows.filter(outcome="finished")
    repetitions = result.repetitions.height
    names = flows["name"].n_unique()
    if flows.height == 1:
        flow = flows.row(0, named=True)
        what = f"{flow['name']}: {size(flow['delivered_bytes'])}"
        if flow["duration_s"] is not None:
            return [f"{what} in {seconds(flow['duration_s'])}, {rate(flow['throughput_bps'])}."]
        if flow["outcome"] == "aborted":
            return [f"{what} of {size(flow['bytes'])} arrived before the flow was aborted: {flow['cause']}."]
        return [f"{what} of {size(flow['bytes'])} had arrived when the run ended."]
    done = f"{finished.height:,} of {flows.height:,} transfers finished"
    if finished.height == 0:
        arrived = size(fmean(flows.group_by("repetition").agg(pl.col("delivered_bytes").sum())["delivered_bytes"]))
        span = seconds(fmean(result.repetitions["simulated_s"]))
        return [
            f"{done} within {span}; {arrived} arrived, {rate(fmean(GOODPUT_IN_ALL.values(result) or [0.0]))} in all."
        ]
    groups = metrics.alike(result)
    in_all = GOODPUT_IN_ALL.values(result)
    together = f"{rate(fmean(in_all))} in all" if names > 1 and repetitions == 1 and in_all else ""
    if len(groups) == 1:
        took = f"in {seconds(fmean(COMPLETION.values(result)))} on the mean"
        more = f" and {together}" if together else ""
        sentence = f"{done}, {took}, at {rate(fmean(GOODPUT.values(result)))} each{more}."
    elif len(groups) <= metrics.MOST_ALIKE:
        sentence = f"{done}: {'; '.join(map(_of_alike, groups))}."
    else:
        times = finished["duration_s"].to_list()
        more = f"; {together}" if together else ""
        sizes = f"of {groups[-1].label} to {groups[0].label}"
        sentence = f"{done}, {sizes}, in {seconds(min(times))} to {seconds(max(times))}{more}."
    return [sentence, *_whole_time(finished)] if repetitions == 1 else [sentence]


def _of_alike(group: metrics.Alike) -> str:
    """Return the size, the time and the rate of transfers of the same size."""
    times, rates = group.values("duration_s"), group.values("throughput_bps")
    several = group.rows["flow"].n_unique() > 1
    if not times:
        return f"{group.label} did not finish"
    words = f"{group.label} in {seconds(fmean(times))}{' on the mean' if group.rows.height > 1 else ''}"
    return f"{words} at {rate(fmean(rates))}{' each' if several else ''}" if rates else words


def _whole_time(finished: pl.DataFrame) -> list[str]:
    """Return a sentence with the time of several transfers together, such as those of a page."""
    ends = finished["start_s"] + finished["duration_s"]
    first, last = finished["start_s"].min(), ends.max()
    if finished.height < 2 or not isinstance(first, float) or not isinstance(last, float):
        return []
    return [f"From the start of the first to the last byte: {seconds(last - first)}."]


def _of_probes(result: Result) -> list[str]:
    """Return a sentence for each kind of probes."""
    found = []
    for (kind,), probes in metrics.probes(result).group_by("kind", maintain_order=True):
        sent, received = int(probes["sent"].sum()), int(probes["received"].sum())
        means = probes["delay_mean_s"].drop_nulls().to_list()
        delay = f", {seconds(fmean(means))} on the mean" if means else ""
        found.append(f"{received:,} of {sent:,} {_what(str(kind))}{delay}.")
    return found


def _what(kind: str) -> str:
    """Return what the probes of a kind of flows are, and that they arrived."""
    words = {
        "ping": "pings came back",
        "datagrams": "datagrams arrived",
        "transactions": "transactions were complete",
        "terminal": "interactions were complete",
        "ftp": "files were transferred",
        "mail": "exchanges were complete",
    }
    return words.get(kind, "probes arrived")


def _of_videos(videos: pl.DataFrame) -> list[str]:
    # A player that is another program reports no playback to its sender.
    played = videos.filter(pl.col("stalls").is_not_null())
    if not played.height:
        lost = videos["lost"].drop_nulls().to_list()
        reported = f"{sum(lost):,} lost packets" if lost else "nothing"
        return [f"{sum(videos['sent'].to_list()):,} packets of a video were sent; the player reported {reported}."]
    videos = played
    stalls, stalled = sum(videos["stalls"].to_list()), sum(videos["stall_s"].to_list())
    started = videos["startup_s"].drop_nulls().to_list()
    start = f"started after {seconds(fmean(started))} on the mean" if started else "did not start"
    text = f"Playback {start}, with {number_of(stalls, 'stall')} of {seconds(stalled)} in all"
    frames = videos.filter(kind="stream")
    if frames.height:
        decoded = sum(frames["frames_decodable"].to_list()) / sum(frames["frames"].to_list())
        text += f"; {share(decoded)} of the frames could be decoded"
    segmented = videos.filter(kind="adaptive")
    qualities = segmented["quality_bps"].drop_nulls().to_list() if segmented.height else []
    if qualities:
        text += f"; the video over HTTP had {rate(fmean(qualities))} on the mean"
    return [f"{text}."]


def _of_calls(calls: pl.DataFrame) -> list[str]:
    scores = calls["mos"].drop_nulls().to_list()
    if not scores:
        return [f"In none of {calls.height:,} calls was speech played out in both directions."]
    delay, lost = (fmean(calls[name].drop_nulls().to_list()) for name in ("mouth_to_ear_s", "frame_loss"))
    what = "The call has" if calls.height == 1 else f"{calls.height:,} calls have on the mean"
    return [
        f"{what} a MOS of {score(fmean(scores))} in the worse direction, {seconds(delay)} from mouth to ear, and "
        f"{share(lost)} of the speech not played out."
    ]


def _ranking(runs: Sequence[Drawn]) -> str:
    """Return the best run, by completion time or else by goodput, and its significance."""
    finished = all(metrics.transfers(run.result)["duration_s"].null_count() == 0 for run in runs)
    metric: Metric = COMPLETION if finished else GOODPUT
    groups = {run.index: metrics.alike(run.result) for run in runs}
    unlike = any(len(each) > 1 for each in groups.values())
    if unlike and len({each[0].label for each in groups.values()}) > 1:
        return f"{len(runs)} runs side by side, with transfers of different sizes."
    column = "duration_s" if finished else "throughput_bps"
    values = {run.index: groups[run.index][0].values(column) if unlike else metric.values(run.result) for run in runs}
    means = {index: fmean(each) if each else 0.0 for index, each in values.items()}
    ordered = sorted(runs, key=lambda run: means[run.index], reverse=not finished)
    best, second = ordered[0], ordered[1]
    what = "finishes first" if finished else "is fastest"
    others = ", ".join(
        f"{metric.words(means[run.index])} with {run.label} ({_distance(means[best.index], means[run.index])})"
        for run in ordered[1:]
    )
    by = f"Of transfers of {groups[best.index][0].label}, " if unlike else ""
    text = f"{by}{best.label} {what}: {metric.words(means[best.index])} against {others}"
    if means[best.index] == means[second.index]:
        return f"{by}{best.label} and {second.label} take the same: {metric.words(means[best.index])}."
    apart = metrics.difference(values[second.index], values[best.index])
    if apart is None:
        return f"{text}."
    if apart.low <= 0 <= apart.high:
        return f"{text}; the first two are not distinguishable at n = {apart.n}."
    low, high = sorted((abs(apart.low), abs(apart.high)))
    return (
        f"{text}; the first two are {metric.words(low)} to {metric.words(high)} apart (95 % interval, n = {apart.n})."
    )


def _distance(best: float, second: float) -> str:
    """Return how much slower the second is, by completion times or rates."""
    least, most = sorted((best, second))
    if least <= 0:
        return "nothing"
    if most / least >= _FEWEST_TIMES:
        return f"{count(most / least)} times slower"
    return f"{share(most / least - 1)} longer" if best < second else f"{share(1 - least / most)} less"


def _stated_repetitions(runs: Sequence[Drawn]) -> list[str]:
    """Return a sentence if there are too few repetitions for a conclusion."""
    fewest = min(run.result.repetitions.height for run in runs)
    if len(runs) > 1 and fewest < 2:
        return ["With one repetition a run, a difference may be chance: use --repeat 30 for intervals."]
    if 1 < fewest < ENOUGH:
        return [f"n = {fewest} is too small for firm intervals: run with --repeat 30."]
    return []
