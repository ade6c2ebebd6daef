"""Past prompts, as the hub tells them, for rules to be tried on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from atlasbridge.core.policy.offer import PastQuestion
from atlasbridge.core.policy.rule import Case, Policy, Verdict
from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource


def case_of(item: dict[str, Any]) -> Case:
    """What the hub kept: where something was hidden, it stays uncertain."""
    told = item["subject"]
    subject = None
    if told is not None:
        subject = Subject(
            SubjectKind(told["kind"]),
            told["text"] if told["certain"] else "",
            told["folder"],
            SubjectSource(told["source"]),
            told["complete"],
            told["text"],
            told["target"],
        )
    return Case(
        subject, item["tool"], item["label"], item["folder"], os.path.expanduser("~"), item.get("real_target", "")
    )


def answered(items: Iterable[dict[str, Any]]) -> list[PastQuestion]:
    return [PastQuestion(case_of(item), item["agreed"]) for item in items]


def past_rows(
    policy: Policy, items: Iterable[dict[str, Any]], judged: Callable[[Policy, Case], Verdict]
) -> list[dict[str, Any]]:
    rows = []
    for item in items:
        if item["secret"] or item["idle"]:
            continue
        verdict = judged(policy, case_of(item))
        said = {True: "allow", False: "deny", None: verdict.verdict.value}[item["agreed"]]
        subject = item["subject"] or {}
        rows.append(
            {
                "prompt_id": item["prompt_id"],
                "created_at": item["created_at"],
                "verdict": verdict.verdict.value,
                "rule": verdict.rule,
                "reason": verdict.reason,
                "answer": item["answer"],
                "against": verdict.verdict.value != "ask" and verdict.verdict.value != said,
                "what": subject.get("text") or item["excerpt"],
            }
        )
    return rows
