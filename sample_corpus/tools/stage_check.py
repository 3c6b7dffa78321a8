#!/usr/bin/env python3
"""Check a stage series exported from Sluice or Holt.

Pellworth Hydrometrics, Field Operations.  Usage:

    stage_check.py series.csv --max-rate 0.60

The CSV file has the columns time (UTC, ISO 8601) and level (metres).
The exit status is 0 if nothing was found, 3 if values were flagged.
"""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path

GAP_FACTOR = 2.5  # a gap is longer than this many usual intervals
FROZEN_READINGS = 24  # so many equal readings in a row look frozen
SPIDER_HOURS = (time(22, 0), time(5, 30))


@dataclass(frozen=True)
class Reading:
    """One value of the series."""

    when: datetime
    level: float


@dataclass(frozen=True)
class Finding:
    """Something a person should look at."""

    when: datetime
    kind: str
    note: str


def read_series(path: Path) -> list[Reading]:
    """Read the CSV file; rows without a level are skipped."""
    readings = []
    with path.open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            if row["level"].strip():
                readings.append(Reading(datetime.fromisoformat(row["time"]), float(row["level"])))
    return sorted(readings, key=lambda r: r.when)


def usual_interval(readings: list[Reading]) -> timedelta:
    """The median distance between two readings."""
    steps = sorted(b.when - a.when for a, b in zip(readings, readings[1:]))
    return steps[len(steps) // 2]


def find_gaps(readings: list[Reading]) -> list[Finding]:
    """Report places where the series is silent for too long."""
    if len(readings) < 3:
        return []
    limit = usual_interval(readings) * GAP_FACTOR
    return [
        Finding(a.when, "gap", f"silent for {b.when - a.when}")
        for a, b in zip(readings, readings[1:])
        if b.when - a.when > limit
    ]


def find_jumps(readings: list[Reading], max_rate: float) -> list[Finding]:
    """Report rises and falls that are faster than max_rate metres per hour."""
    findings = []
    for a, b in zip(readings, readings[1:]):
        hours = (b.when - a.when).total_seconds() / 3600
        if hours <= 0:
            continue
        rate = (b.level - a.level) / hours
        if abs(rate) > max_rate:
            kind = "spider" if in_spider_hours(b.when.time()) else "jump"
            findings.append(Finding(b.when, kind, f"{rate:+.2f} m/h"))
    return findings


def in_spider_hours(moment: time) -> bool:
    """Spiders spin their webs on radar horns at night."""
    start, end = SPIDER_HOURS
    return moment >= start or moment <= end


def find_frozen(readings: list[Reading]) -> list[Finding]:
    """Report runs of equal readings."""
    findings, run = [], 1
    for a, b in zip(readings, readings[1:]):
        run = run + 1 if a.level == b.level else 1
        if run == FROZEN_READINGS:
            findings.append(Finding(b.when, "frozen", f"{run} times {b.level:.3f} m"))
    return findings


def find_midnight_slips(readings: list[Reading]) -> list[Finding]:
    """Report values dated a day too late (fault OT-1140)."""
    return [
        Finding(b.when, "midnight", "date probably one day ahead")
        for a, b in zip(readings, readings[1:])
        if b.when - a.when >= timedelta(hours=23) and b.when.time() >= time(23, 59, 30)
    ]


def main(argv: list[str] | None = None) -> int:
    """Command line entry point."""
    parser = argparse.ArgumentParser(description="check a stage series")
    parser.add_argument("file", type=Path)
    parser.add_argument("--max-rate", type=float, default=0.60, help="metres per hour")
    args = parser.parse_args(argv)
    readings = read_series(args.file)
    findings = (
        find_gaps(readings)
        + find_jumps(readings, args.max_rate)
        + find_frozen(readings)
        + find_midnight_slips(readings)
    )
    for finding in sorted(findings, key=lambda f: f.when):
        print(f"{finding.when.isoformat()}\t{finding.kind}\t{finding.note}")
    return 3 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
