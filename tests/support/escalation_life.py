"""A virtual world for the escalation policy: people, channels that fail, a hub that restarts, prompts that come and go.

It keeps, as the store does, only what a restart would find, and says what went wrong in words.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import ceil
from random import Random

from hypothesis import strategies as st

from atlasbridge.core.policy.escalation import (
    WAKE,
    Attendance,
    AttentionSettings,
    EscalationPolicy,
    EscalationStep,
    Life,
    Notification,
    Outlook,
    PeopleBook,
    Person,
    PresenceSettings,
    QuietHours,
    Route,
    covers,
    default_escalation,
    listeners,
)

NAMES = ("Ana", "Bo", "Cy")
ROUTES = (
    Route("web", False),
    Route("local", False),
    Route("telegram", True, ("Ana", "Bo")),
    Route("slack", True, ("Bo", "Cy")),
    Route("ntfy", True),
)
RETRY_S = 7.0


@dataclass
class Asked:
    """One prompt: what the store keeps of it, and what will happen to it."""

    number: int
    escalation_policy: EscalationPolicy
    life_s: float
    at: float
    ends_at: float  # when somebody answers or the tool moves on; after the deadline: never
    refuses: bool  # a timer may type its default
    idle: bool
    done: set[tuple[int, str]] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    end: str = ""
    ended_at: float = 0.0
    snoozes: list[tuple[float, float]] = field(default_factory=list)  # when somebody says so, and until when
    wakes: list[float] = field(default_factory=list)
    held_until: float = float("-inf")
    put_off_at: float = float("inf")

    @property
    def deadline(self) -> float:
        """Anyone who snoozes it is given its whole time again afterwards."""
        return max([self.at + self.life_s, *(wake + self.life_s for wake in self.wakes)])


@dataclass
class World:
    seed: int
    prompts: int
    limit: int


def worlds() -> st.SearchStrategy[World]:
    return st.builds(World, st.integers(0, 2**32), st.integers(1, 12), st.sampled_from([0, 1, 3, 20]))


def live(world: World) -> list[str]:
    return Simulation(world).run()


class Simulation:
    def __init__(self, world: World) -> None:
        self.random = Random(world.seed)
        self.limit = world.limit
        self.wrong: list[str] = []
        self.heard: dict[str, list[float]] = defaultdict(list)
        self.sent: list[tuple[int, tuple[int, ...], str]] = []
        self.routes = tuple(self.random.sample(ROUTES, self.random.randint(1, len(ROUTES))))
        self.people = PeopleBook.of(*(Person(name, (), self._quiet()) for name in NAMES))
        self.settings = AttentionSettings(
            self.people, (), PresenceSettings(), self.random.choice([0.0, 30.0]), world.limit
        )
        self.attendance = Attendance(self.settings)
        self.span_s = self.random.choice([60.0, 3600.0, 20_000.0])
        self.keys = sorted(self.random.uniform(-30, self.span_s) for _ in range(self.random.randint(0, 30)))
        if self.random.random() < 0.2:  # somebody who never stops
            self.keys = [float(at) for at in range(0, int(self.span_s) + 5000, 10)]
        self.restarts = sorted(self.random.uniform(0, self.span_s) for _ in range(self.random.randint(0, 3)))
        self.outages = {route.name: self._outages() for route in self.routes}
        self.asked = [self._ask(number) for number in range(world.prompts)]
        self.queue: list[tuple[float, int, Asked, Notification | None]] = []
        self.order = 0

    def _quiet(self) -> tuple[QuietHours, ...]:
        return tuple(
            QuietHours(self.random.randrange(720), self.random.randrange(720, 1440))
            for _ in range(self.random.randint(0, 1))
        )

    def _outages(self) -> list[tuple[float, float]]:
        starts = [self.random.uniform(0, self.span_s) for _ in range(self.random.randint(0, 2))]
        return [(start, start + self.random.uniform(1, self.span_s)) for start in starts]

    def _ask(self, number: int) -> Asked:
        at, life_s = self.random.uniform(0, self.span_s), self.random.choice([5.0, 120.0, 600.0, 5000.0])
        ends_at = at + self.random.uniform(0, life_s * 2)
        asked = Asked(
            number,
            self._escalation_policy(life_s),
            life_s,
            at,
            ends_at,
            self.random.random() < 0.5,
            self.random.random() < 0.2,
        )
        if self.random.random() < 0.2:
            said = [at + self.random.uniform(0, life_s) for _ in range(self.random.randint(1, 3))]
            asked.snoozes = sorted((moment, moment + self.random.choice([60.0, 900.0, 3600.0])) for moment in said)
        return asked

    def _escalation_policy(self, life_s: float) -> EscalationPolicy:
        if self.random.random() < 0.4:
            return default_escalation(tuple(after for after in (300.0, 450.0) if after < life_s))
        steps = tuple(
            EscalationStep(
                self.random.choice([0.0, 10.0, 60.0, life_s * 1.5]),
                tuple(self.random.sample(NAMES, self.random.randint(0, 2))),
                tuple(self.random.sample(["hub", "away", "telegram", "slack", "nowhere"], self.random.randint(0, 2))),
                self.random.random() < 0.8,
            )
            for _ in range(self.random.randint(0, 4))
        )
        return EscalationPolicy(steps, "own", urgent=self.random.random() < 0.3)

    # running

    def run(self) -> list[str]:
        for asked in self.asked:
            self._put(asked.at, asked, None)
        restarts = list(self.restarts)
        while self.queue:
            if restarts and restarts[0] <= self.queue[0][0]:
                self._restart(restarts.pop(0))
                continue
            now, _, asked, notice = heappop(self.queue)
            if notice is not None:
                self._send(asked, notice, now)
            else:
                self._look(asked, now)
        self._judge()
        return self.wrong

    def _put(self, at: float, asked: Asked, notice: Notification | None) -> None:
        self.order += 1
        heappush(self.queue, (at, self.order, asked, notice))

    def _restart(self, at: float) -> None:
        """All that was only remembered is gone; what was claimed and never shown is asked again."""
        self.attendance = Attendance(self.settings)
        for name, moments in self.heard.items():
            for moment in moments[-200:]:
                self.attendance.remember(name, moment)
        self.queue = [item for item in self.queue if item[2].at > at and item[3] is None]
        heapify(self.queue)
        for asked in self.asked:
            if asked.at <= at and not asked.end:
                lost = {channel for _, channel in asked.done} - asked.shown
                asked.done = {(step, channel) for step, channel in asked.done if channel not in lost}
                self._put(at, asked, None)

    def _look(self, asked: Asked, now: float) -> None:
        if asked.end:
            return
        if asked.ends_at <= now and asked.ends_at < asked.deadline:
            asked.end, asked.ended_at = "answer", asked.ends_at
            return
        if now >= asked.deadline:
            asked.end = "default" if asked.refuses else "nobody"
            asked.ended_at = now
            return
        self._hear_snoozes(asked, now)
        typed = bisect_right(self.keys, now)
        outlook = Outlook(
            now,
            self.keys[typed - 1] if typed else None,
            away=False,
            quiet=self.people.quiet_now(now, lambda zone, wall: int(wall / 60) % 1440),
        )
        life = Life(
            asked.at, asked.deadline, frozenset(asked.done), wakes=tuple(asked.wakes), held_until=asked.held_until
        )
        plan = self.attendance.decide(
            asked.escalation_policy, life, self.routes, outlook, inhibited=asked.idle and self._waits(asked)
        )
        for notice in plan.notices:
            self._check(asked, notice, outlook)
            asked.done |= {(step, notice.channel) for step in notice.steps}
            route = next(route for route in self.routes if route.name == notice.channel)
            for name in listeners(notice, route):
                if now not in self.heard[name]:
                    self.heard[name].append(now)
            self._put(now, asked, notice)
        if plan.look_at is None or plan.look_at <= now:
            self.wrong.append(f"at {now} prompt {asked.number} is looked at again at {plan.look_at}")
            return
        moments = [
            plan.look_at,
            max(asked.ends_at, now + 0.001),
            *(said for said, _ in asked.snoozes if said > now),
        ]
        self._put(min(moments), asked, None)

    def _hear_snoozes(self, asked: Asked, now: float) -> None:
        """Only who was shown it can say that they want to be asked again."""
        while asked.snoozes and asked.snoozes[0][0] <= now:
            _, until = asked.snoozes.pop(0)
            if asked.shown and until > now:
                asked.put_off_at = min(asked.put_off_at, now)
                asked.wakes.append(until)
                asked.held_until = max(asked.held_until, until)

    def _waits(self, idle: Asked) -> bool:
        return any(not one.end and not one.idle and one is not idle for one in self.asked)

    def _check(self, asked: Asked, notice: Notification, outlook: Outlook) -> None:
        if outlook.now < asked.held_until:
            self.wrong.append(f"prompt {asked.number} was told of while it was put off")
        repeated = {(step, notice.channel) for step in notice.steps} & asked.done
        if repeated:
            self.wrong.append(f"step {repeated} of prompt {asked.number} twice")
        route = next(route for route in self.routes if route.name == notice.channel)
        sleeping = set(listeners(notice, route)) & outlook.quiet
        if sleeping and not asked.escalation_policy.urgent:
            self.wrong.append(f"{sleeping} were woken by prompt {asked.number}")
        if notice.reminder and notice.channel not in {channel for _, channel in asked.done}:
            self.wrong.append(f"prompt {asked.number} reminds {notice.channel} of what was never asked there")

    def _send(self, asked: Asked, notice: Notification, now: float) -> None:
        if asked.end or asked.ends_at <= now or now >= asked.deadline:
            return  # nobody is told of what is settled: the channel worker asks whether it is still wanted
        back_at = max((end for start, end in self.outages[notice.channel] if start <= now < end), default=None)
        if back_at is not None:
            if not notice.reminder:  # tried again and again: the first time that it works counts
                self._put(now + RETRY_S * ceil((back_at - now) / RETRY_S), asked, notice)
            return
        self.sent.append((asked.number, notice.steps, notice.channel))
        asked.shown.add(notice.channel)

    # judging

    def _judge(self) -> None:
        for asked in self.asked:
            if asked.end not in ("answer", "default", "nobody"):
                self.wrong.append(f"prompt {asked.number} never ended")
            elif asked.ended_at > asked.deadline + 0.01:
                self.wrong.append(f"prompt {asked.number} ended late")
            self._judge_reach(asked)
        if self.limit:
            for name, moments in self.heard.items():
                moments.sort()
                for index, moment in enumerate(moments):
                    within = sum(1 for other in moments[index:] if other < moment + 3600)
                    if within > self.limit:
                        self.wrong.append(f"{name} heard {within} within an hour")
                        break

    def _judge_reach(self, asked: Asked) -> None:
        """A channel that works is asked at once where the escalation policy says so; presence may delay it by a
        minute."""
        steps = asked.escalation_policy.steps
        self._judge_unseen(asked)
        if not any(not step.who and not step.channels and step.after_s == 0 for step in steps):
            return
        until = min(asked.ends_at, asked.deadline)
        if asked.wakes:
            until = min(until, asked.put_off_at)
            self._judge_wakes(asked)
        for route in self.routes:
            late_s = 61.0 if route.remote else 0.1
            works = not any(start <= until for start, _ in self.outages[route.name])
            if works and until - asked.at > late_s and route.name not in asked.shown:
                self.wrong.append(f"prompt {asked.number} was never shown in {route.name}")

    def _judge_unseen(self, asked: Asked) -> None:
        """What expired and nobody was ever shown: then no channel worked from its beginning to its end."""
        lasted = asked.end in ("default", "nobody") and asked.deadline - asked.at > 61.0
        if asked.shown or not lasted:
            return
        for route in self.routes:
            down = [
                (start, end) for start, end in self.outages[route.name] if end > asked.at and start < asked.deadline
            ]
            in_time = [
                step
                for step in asked.escalation_policy.steps or (EscalationStep(),)
                if step.after_s + 61.0 < asked.life_s
            ]
            if not down and any(covers(step, route) for step in in_time):
                self.wrong.append(f"prompt {asked.number} expired unseen, though {route.name} worked")

    def _judge_wakes(self, asked: Asked) -> None:
        """Anyone who wanted to be asked again was, wherever it had been shown, if it still waited then."""
        last = max(asked.wakes)
        if min(asked.ends_at, asked.deadline) <= last + 61.0 or asked.end == "":
            return
        told = {channel for step, channel in asked.done if step >= WAKE}
        for route in self.routes:
            if route.name in asked.shown and route.name not in told:
                self.wrong.append(f"prompt {asked.number} was put off and never told of again in {route.name}")


def count_lives(seed: int, lives: int) -> tuple[int, list[str]]:
    """As many worlds as hold that many lives; stops at the first that is wrong."""
    random, done = Random(seed), 0
    while done < lives:
        world = World(random.randrange(2**32), random.randint(1, 12), random.choice([0, 1, 3, 20]))
        if wrong := live(world):
            return done, [f"{world}: {line}" for line in wrong]
        done += world.prompts
    return done, []
