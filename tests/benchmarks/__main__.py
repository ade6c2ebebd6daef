"""`make bench`: everything side by side in one run; writes docs/benchmarks.md and a plot.

The sections are measured here in turn; how each figure is taken is the business of the modules beside this one.
"""

from __future__ import annotations

import argparse
import compileall
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import atlasbridge
import ptypool
from tests.benchmarks import few_sessions, judging, latency, profile, relaying, resting, ruling
from tests.benchmarks.fidelity import fidelity_rows
from tests.benchmarks.measure import Series, wall
from tests.benchmarks.peers import all_peers, have, instrument
from tests.benchmarks.product import ATLAS, Product
from tests.benchmarks.report import Report, machine, plot, table
from tests.support.zygotes import SWITCH

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"

DOCS = Path(__file__).resolve().parents[2] / "docs"


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    passes: int
    rounds: int
    megabytes: int
    tails: int
    prompts: int
    idle_s: float
    sessions: tuple[int, ...]


FULL = Effort(passes=4, rounds=7, megabytes=100, tails=100, prompts=300, idle_s=20, sessions=(1, 10, 100))
QUICK = Effort(passes=1, rounds=3, megabytes=20, tails=10, prompts=10, idle_s=5, sessions=(1, 10))


FLEET = "## A growing fleet"


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Writes docs/benchmarks.md.")
    words.add_argument("--quick", action="store_true", help="fewer rounds")
    effort = QUICK if words.parse_args().quick else FULL
    begun, load = time.monotonic(), os.getloadavg()[0]
    be_as_installed()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="ab") as folder:
        tool = instrument(Path(folder))
        peers, missing = have(all_peers(tool))
        with Product() as product:
            bench = relaying.Bench(tool, Path(folder), peers, product.env)
            figures = bench.measure(effort.megabytes, effort.passes)
            pass_through(report, figures, bench.tails(effort.tails))
            typing(report, figures)
            starting(report, bench, effort)
            profiling(report, bench, product, effort, figures.colour)
        detecting(report, effort, bench)
    at_rest(report, effort)
    report.section("Fidelity", "The same keys typed into the same programs, directly and under AtlasBridge.", "")
    report.add(*fidelity_rows(), "")
    minutes = (time.monotonic() - begun) / 60
    report.add(f"Machine: {machine()}, load {load:.1f} before the run; {minutes:.0f} minutes.")
    report.add(f"Peers that could not be had: {', '.join(missing) or 'none'}.")
    page = report.page(
        "`make bench` made this page in one run: peers in turns, medians; ratios within a round, "
        "± what chance may have moved them by (standard error)."
    )
    _, heading, fleet = (DOCS / "benchmarks.md").read_text().partition(FLEET)  # measured by the fleet's storm
    (DOCS / "benchmarks.md").write_text(page + (f"\n{heading}{fleet}" if heading else ""))
    sys.stdout.write(page)
    return 0


def be_as_installed() -> None:
    """Anyone who installs the package has it compiled, and not configured yet; in a checkout neither is certain."""
    for name in [name for name in os.environ if name.startswith("ATLASBRIDGE_")]:
        del os.environ[name]
    for package in (atlasbridge, ptypool):
        compileall.compile_dir(package.__path__[0], quiet=1)


def pass_through(report: Report, figures: relaying.Figures, tails: dict[str, tuple[int, int]]) -> None:
    colour = figures.colour
    plot(colour, DOCS / "images" / "throughput.svg")
    report.section("Pass-through", *table(colour), "![throughput](images/throughput.svg)", "")
    report.add(*table(figures.plain))
    report.add("### Whole output of a program that writes and ends at once", "", "| | complete | of |", "|---|---|---|")
    report.add(*(f"| {name} | {good} | {tried} |" for name, (good, tried) in tails.items()), "")
    for name in ("C poll relay", "script(1)", "pexpect", "asciinema", "tmux"):
        if name in colour.samples:
            ratio, doubt = (take("AtlasBridge", name) for take in (colour.ratio, colour.doubt))
            aim, met = ("at least 0.95", ratio >= 0.95) if name == "C poll relay" else ("more than 1", ratio > 1)
            report.target(f"throughput, of {name}", aim, f"{ratio:.2f} ± {doubt:.2f}", met)
    good, tried = tails["AtlasBridge"]
    report.target("output complete to its last byte", "always", f"{good} of {tried}", good == tried)


def typing(report: Report, figures: relaying.Figures) -> None:
    half = figures.echo
    series = (half, figures.late_echo, figures.person, figures.flooded)
    report.section("Typing", *(line for each in series for line in table(each)))
    added = half.added("AtlasBridge", "direct PTY")
    report.target("echo of a key, added to a direct PTY", "under 100 us", f"{added:.0f} us", added < 100)
    if "tmux" in half.samples:
        tmux = half.added("tmux", "direct PTY")
        report.target("echo of a key, below tmux", f"under {tmux:.0f} us", f"{added:.0f} us", added < tmux)


def starting(report: Report, bench: relaying.Bench, effort: Effort) -> None:
    series = Series("Start-up, whole run in a terminal, the hub running", "ms", "lower")
    plain, run, help_ = "`true` in a PTY", "`atlasbridge run true`", "`atlasbridge --help`"
    commands = {
        plain: ["true"],
        run: [ATLAS, "run", "true"],
        help_: [ATLAS, "--help"],
        "`atlasbridge status`": [ATLAS, "status"],
        "`atlasbridge approvals --json`": [ATLAS, "approvals", "--json"],
        "`python -c pass`": [sys.executable, "-c", "pass"],
    }
    alone = {**bench.env, SWITCH: "0"}
    for series.round in range(effort.rounds * 3):
        for name, argv in commands.items():
            series.add(name, wall(argv, bench.tool, bench.env))
        series.add("`atlasbridge run true`, no zygote", wall(commands[run], bench.tool, alone))
    report.section("Start", *table(series))
    added, shown = series.median(run) - series.median(plain), series.median(help_)
    report.target("the next `run true`, added to `true` in a PTY", "under 40 ms", f"{added:.0f} ms", added < 40)
    report.target("`--help`", "under 80 ms", f"{shown:.0f} ms", shown < 80)


def profiling(report: Report, bench: relaying.Bench, product: Product, effort: Effort, colour: Series) -> None:
    file = bench.payload(effort.megabytes)
    head = f"| processor time | {effort.megabytes} MB: own code, ms | kernel, ms | a key and its echo, us |"
    report.section("Where the time goes", head, "|---|---|---|---|")
    for peer in bench.peers:
        if peer.name in ("C poll relay", "bare Python", "AtlasBridge"):
            find = product.host if peer.name == "AtlasBridge" else profile.child_of
            own, kernel = profile.relay_ms(bench.tool, peer, file, bench.env, find)
            a_key = statistics.median(profile.key_us(bench.tool, peer, bench.env, find) for _ in range(effort.rounds))
            report.add(f"| {peer.name} | {own:.0f} | {kernel:.0f} | {a_key:.0f} |")
    spent = profile.imports_ms()
    names = ("direct PTY", "bare Python", "AtlasBridge")
    direct, floor, ours = (colour.ratio(name, "C poll relay") for name in names)
    report.add(
        "",
        f"A Python program that relays and does nothing else, the interpreter's share, reaches {floor:.2f} of the C "
        f"relay's speed; AtlasBridge, which also remembers and judges, {ours:.2f}. With no relay at all it would be "
        f"{direct:.2f}: most of the time is spent by the kernel, for the tool that writes and the terminal that reads.",
        "",
        f"In a loop that never sleeps the interpreter needs {profile.warm_us():.0f} us for what a relay does at least "
        "for a key and its echo (twice poll, read and write). A key comes after a silence and finds the processor's "
        "caches cold: that is what the last column shows, and why it is counted by the objects that are touched. Of "
        "AtlasBridge's part only what comes before the two writes delays the echo; the rest remembers and judges.",
        "",
        f"Of AtlasBridge's own code {spent['host'] + spent['judging']:.0f} ms are imports. The client imports for "
        f"{spent['client']:.0f} ms, the host for {spent['host']:.0f} ms before it serves, and for "
        f"{spent['judging']:.0f} ms what judges the screen, while the tool runs already: {spent['values']:.0f} ms "
        f"of that make value classes, {spent['expressions']:.0f} ms compile regular expressions. A question that is "
        "asked before that is raised as soon as it is done.",
        "",
    )


def detecting(report: Report, effort: Effort, bench: relaying.Bench) -> None:
    report.section("Detection and replies", "| | p50 ms | p99 ms |", "|---|---|---|")
    aims = {"blocked in read": 60.0, "event loop": 250.0}
    typed: list[float] = []
    for name, source in latency.SIGNALS.items():
        raised, answered = latency.of_prompts(source, effort.prompts)
        typed += answered
        half, late = latency.percentiles(raised)
        report.add(f"| rest to raised: {name} | {half:.0f} | {late:.0f} |")
        if name in aims:
            report.target(
                f"raised after rest, {name}", f"p99 under {aims[name]:.0f} ms", f"{late:.0f} ms", late < aims[name]
            )
    first = latency.of_first_prompts(effort.rounds)
    half, late = latency.percentiles(first)
    report.add(
        f"| rest to raised: a session's first question, asked at once ({len(first)}) | {half:.0f} | {late:.0f} |"
    )
    blind = judging.raised_without_probe_s()
    report.add(f"| rest to raised: the probe cannot tell (virtual clock) | {blind * 1e3:.0f} | {blind * 1e3:.0f} |")
    report.target("raised after rest, probe cannot tell", "under 2.3 s", f"{blind:.2f} s", blind < 2.3)
    half, late = latency.percentiles(typed)
    report.add(f"| reply to the byte at the tool | {half:.0f} | {late:.0f} |", "")
    report.target("reply to the byte at the tool", "p99 under 50 ms", f"{late:.0f} ms", late < 50)
    flood = latency.after_a_flood(bench.payload(effort.megabytes))
    report.add(
        f"A prompt at the end of {effort.megabytes} MB, nobody attached: raised {flood.raised_ms:.0f} ms after the "
        f"last byte; host {flood.before_mb:.1f} MB (PSS) before and {flood.after_mb:.1f} MB after the flood."
    )
    grown = flood.after_mb - flood.before_mb
    report.target(f"memory grown by {effort.megabytes} MB of output", "flat (under 2 MB)", f"{grown:.1f} MB", grown < 2)
    of_animated_tools(report)
    ruled = ruling.verdicts()
    report.add(
        f"A verdict of the rules on {ruled.count} commands that try to slip through: p50 {ruled.p50_ms:.1f} ms, p99 "
        f"{ruled.p99_ms:.1f} ms; the parser's process alone "
        f"{ruled.parser_p50_ms:.1f} and {ruled.parser_p99_ms:.1f} ms.",
        "",
    )
    report.target("verdict of the rules", "p99 under 10 ms", f"{ruled.p99_ms:.1f} ms", ruled.p99_ms < 10)
    day = judging.a_busy_day()
    report.add(
        f"One judgement of a full screen: {judging.analysis_us():.0f} us. 24 simulated hours, {day.asked} prompts "
        f"asked, {day.raised} raised: {day.kb_after_an_hour:.0f} KB after an hour, "
        f"{day.kb_at_the_end:.0f} KB at the end.",
        "",
    )


def of_animated_tools(report: Report) -> None:
    """What judging costs while a full-screen tool animates: recordings, played on a virtual clock."""
    report.add("| judged while it animates | s | looks | of the time | a look, p99, ms |", "|---|---|---|---|---|")
    tools = judging.animated_tools()
    for tool in tools:
        report.add(f"| {tool.name} | {tool.seconds:.0f} | {tool.looks} | {tool.share:.2%} | {tool.p99_ms:.1f} |")
    share, late = max(tool.share for tool in tools), judging.large_look_ms()
    report.add("", f"A look at 200x60 with a list of 60 choices: {late:.1f} ms (p99).", "")
    report.target("judging an animated full-screen tool", "under 5 % of its time", f"{share:.2%}", share < 0.05)
    report.target("a look at a screen of 200x60", "p99 under 5 ms", f"{late:.1f} ms", late < 5)


def at_rest(report: Report, effort: Effort) -> None:
    report.section("At rest", "| | % of a core | wake-ups a second |", "|---|---|---|")
    figures = resting.idling(effort.idle_s)
    report.add(*(f"| {name} | {cpu:.2f} | {wakes:.1f} |" for name, (cpu, wakes) in figures.items()), "")
    cpu, wakes = map(max, zip(*(figures[name] for name in figures if name.startswith("session")), strict=True))
    report.target("a session at rest, processor", "under 0.2 %", f"{cpu:.2f} %", cpu < 0.2)
    report.target("a session at rest, wake-ups", "under 4 a second", f"{wakes:.1f}", wakes < 4)
    report.add("| one attached session, MB (PSS) | client | host | together |", "|---|---|---|---|")
    for moment, client, host in resting.attached():
        report.add(f"| {moment} | {client:.1f} | {host:.1f} | {client + host:.1f} |")
        report.target(f"client and host, {moment}", "under 20 MB", f"{client + host:.1f} MB", client + host < 20)
    report.add(
        "", f"An interpreter with the same modules of its library and nothing of ours: {resting.interpreter():.1f} MB."
    )
    report.add("", "| sessions without a terminal | host, MB each (PSS) | hub, MB (PSS) |", "|---|---|---|")
    rows = resting.directory(effort.sessions)
    report.add(*(f"| {count} | {host:.1f} | {hub:.1f} |" for count, host, hub in rows), "")
    each = rows[-1][1]
    report.target(f"a host, one of {rows[-1][0]}, Python {VERSION}", "under 8 MB", f"{each:.1f} MB", each < 8)
    few = few_sessions.measure(effort.rounds)
    report.add(*few_sessions.table(few), "", few_sessions.WHY, "")
    one = few[4].median(few_sessions.WITH)
    report.target("the first session with all that it starts", "under 30 MB", f"{one:.1f} MB", one < 30)
    largest = max(hub for _, _, hub in rows)
    report.target(
        f"the hub with its page, up to {rows[-1][0]} sessions", "under 50 MB", f"{largest:.0f} MB", largest < 50
    )


if __name__ == "__main__":
    sys.exit(main())
