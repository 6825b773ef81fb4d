"""The schedule of a contest, simulated: made-up seconds and scores, no clock, no machine."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from empirisk.league.contest.budget import COMPILED_ELSEWHERE, OVER, SLOW, TimeBudget
from empirisk.league.contest.schedule import CANNOT_WIN, FEWEST, FIRST_ROWS, Schedule
from empirisk.league.records import CandidateResult, FoldResult, winner


@dataclass(frozen=True)
class Kind:
    """A candidate that gains ``skill`` and takes ``pace`` seconds for a thousand rows."""

    name: str
    skill: float = 0.5
    pace: float = 1.0
    turn: int = 3
    power: float = 1.0
    tried: int = 2
    fails: bool = False
    reason: str = ""
    votes: bool = False
    cold: bool = False  # its loops are not compiled yet
    gain: float = 0.02  # by 2.7 times as many rows
    loading: float = 0.0

    @property
    def title(self):
        return self.name.capitalize()

    @property
    def early(self):
        return self.turn <= 1

    @property
    def growths(self):
        return 0.5, self.power


@dataclass(frozen=True, order=True)
class Setting:
    """A setting of a kind; the first is the best of two, and a change of it is a little better once."""

    kind: Kind
    number: int
    members: tuple = ()

    @property
    def skill(self):
        best = max((one.skill for one in self.members), default=self.kind.skill)
        return best + 0.01 * len(self.members) + {1: -0.05, 9: 0.005}.get(self.number, 0.0)

    @property
    def pace(self):
        return sum(one.pace for one in self.members) or self.kind.pace


class Kinds:
    """The settings of kinds."""

    large = False

    def reason_not_to_run(self, kind, folds):
        return kind.reason

    def of(self, kind, folds):
        return [Setting(kind, number) for number in range(kind.tried)]

    def slow(self, kind):
        return kind.pace > 10

    def around(self, setting):
        return [Setting(setting.kind, 9)] if setting.number != 9 else []

    def can_vote(self, setting):
        return True

    def votes(self, voters, folds):
        members = [one.machine for one in voters]
        return [Setting(members[0].kind, 0, tuple(members[:2]))]

    def encoding(self, setting):
        return "numbers"


@dataclass(eq=False)
class Table:
    """Rows in folds; encoding a fold takes a hundredth of a second for a thousand rows."""

    rows: int
    count: int = 5
    seconds: float = 0.0
    done: set = field(default_factory=set)

    @property
    def judges(self):
        return self.rows // 4

    @property
    def total(self):
        return self.rows * 5 // 4

    def __len__(self):
        return self.count

    def part(self, rows):
        return replace(self, rows=min(rows, self.rows), count=1, done=set(), seconds=0.0)

    def encoding(self, wanted):
        return wanted

    def encoded(self, fold, encoding):
        return fold in self.done


@dataclass
class KeptTime(TimeBudget):
    """Notes how much was kept for the refit of which fit."""

    kept: list = field(default_factory=list)

    def keep(self, encoding, fit=0.0, predicting=0.0, share=1.0):
        super().keep(encoding, fit, predicting, share)
        self.kept.append((fit, self.refit))


class Simulation:
    """A contest that passes in no time: ``now`` goes on by what each fold takes."""

    def __init__(self, kinds, rows=1000, limit=np.inf, known=None, longer=1.0):
        self.now, self.plays, self.heard = 0.0, [], []
        self.folds, self.longer = Table(rows), longer
        self.known = {} if known is None else known
        self.budget = KeptTime(limit, 0.0, 0.0, now=lambda: self.now, worked=lambda: self.now)
        self.schedule = Schedule(kinds, self.folds, Kinds(), self.budget, self.heard.append)

    def run(self, until=np.inf):
        play = self.schedule.next()
        while play is not None:
            play = self.schedule.next(self.outcome(play) if len(self.plays) < until else interrupted())
        return self

    def outcome(self, play):
        key = play.setting, play.folds.rows, play.fold
        if key in self.known:
            return self.known[key]
        refusal = self.budget.refusal(play.expected) if play.limited else ""
        if refusal:
            return FoldResult(state="stopped" if refusal == OVER else "late", reason=refusal)
        if play.setting.kind.cold and self.schedule.may_wait:
            return FoldResult(state="late", reason=COMPILED_ELSEWHERE)
        self.plays.append(play)
        if play.fold not in play.folds.done:
            play.folds.done.add(play.fold)
            play.folds.seconds = play.folds.rows / 1e5
            self.now += play.folds.seconds
        if play.setting.kind.fails:
            return FoldResult(state="out", reason="it fails")
        thousands = play.folds.rows / 1000
        seconds = self.longer * play.setting.pace * thousands**play.setting.kind.power
        if play.limited and seconds > self.budget.left:  # it is cut when its turn is over
            self.now += max(self.budget.left, 0.0)
            return FoldResult(state="late" if self.now < self.budget.deadline else "stopped", reason=SLOW)
        self.now += seconds
        # Folds are hard or easy for all, and more rows teach more.
        score = play.setting.skill + 0.02 * play.fold + play.setting.kind.gain * np.log(play.folds.rows)
        result = FoldResult(score, seconds, 0.0, "", play.folds.judges)
        self.known[key] = result
        return result

    @property
    def results(self):
        return self.schedule.results

    def names(self, **where):
        return [
            one.result.name
            for one in self.plays
            if all(getattr(one.folds if key == "rows" else one, key) == value for key, value in where.items())
        ]


def interrupted():
    return FoldResult(state="stopped", reason="interrupted")


BASELINE = Kind("baseline", 0.1, 0.001, turn=0, tried=1)
VOTE = Kind("vote", votes=True)
FIVE = [
    BASELINE,
    Kind("logistic", 0.6, 0.1, 1),
    Kind("tree", 0.5, 0.2),
    Kind("svm", 0.7, 0.5, 2),
    Kind("forest", 0.8, 1),
]


def test_without_a_limit_everyone_plays_every_fold_simple_ones_first():
    done = Simulation([*FIVE, Kind("network", 0.9, 20), Kind("knn", 0.4)]).run()
    assert [one.name for one in done.heard if one.state == "done"] == [
        *("baseline", "logistic", "tree", "svm", "forest"),
        *("knn", "network"),  # the slow one last
    ]
    assert all(len(one.scores) == 5 for one in done.results.values())
    assert not any(play.limited for play in done.plays)
    assert done.schedule.ended == ""
    # Two settings on the first fold, and both on the others.
    assert [(play.setting.number, play.fold) for play in done.plays if play.result.name == "tree"] == [
        (number, fold) for fold in range(5) for number in (0, 1)
    ]


def test_who_must_be_compiled_first_plays_when_the_leaders_have_played_all_rows():
    kinds = [BASELINE, Kind("logistic", 0.6, 0.1, 1, cold=True), Kind("svm", 0.8, 1, 2, cold=True), Kind("tree", 0.5)]
    done = Simulation(kinds, rows=20_000, limit=1000).run()
    order = [(play.result.name, play.folds.rows, play.fold) for play in done.plays]
    assert order[1] == ("logistic", FIRST_ROWS, 0)  # one of the first is compiled where it plays
    first = order.index(("svm", FIRST_ROWS, 0))  # few rows, as everyone in the first round
    assert order.index(("logistic", 20_000, 4)) < first < order.index(("svm", 20_000, 4))
    assert winner(list(done.results.values())).name == "svm"


def test_settings_that_take_turns_on_the_first_fold_do_not_use_up_the_time(monkeypatch):
    """Of 10, 11 and 13 the first two go on, and 11 is the best; of 11, 12 and 10 it is the first that does not."""
    first, later = {10: 0.83, 11: 0.80, 12: 0.84, 13: 0.7}, {10: 0.8, 11: 0.85, 12: 0.7, 13: 0.7}
    around = {10: (11, 13), 11: (12, 10)}
    monkeypatch.setattr(Kinds, "of", lambda self, kind, folds: [Setting(kind, 10)])
    changed = lambda self, setting: [Setting(setting.kind, number) for number in around.get(setting.number, ())]  # noqa: E731
    monkeypatch.setattr(Kinds, "around", changed)
    calls = []

    class Turns(Simulation):
        def outcome(self, play):
            calls.append(play)
            assert len(calls) < 1000  # what was played before takes no time
            found = super().outcome(play)
            known = (later if play.fold else first)[play.setting.number] if play.result.place else 0.1
            return replace(found, score=known) if found.state == "played" else found

    done = Turns([BASELINE, Kind("logistic", 0.6, 0.1, 1)], limit=100).run()
    assert done.results["logistic"].machine.number == 11
    assert done.results["logistic"].state == "done"


def test_a_large_table_keeps_one_setting_after_the_first_fold(monkeypatch):
    monkeypatch.setattr(Kinds, "large", True)
    done = Simulation(FIVE).run()
    tree = [(play.setting.number, play.fold) for play in done.plays if play.result.name == "tree"]
    assert tree == [(0, 0), (1, 0), (0, 1), (0, 2), (0, 3), (0, 4)]


def test_a_vote_of_the_best_comes_last():
    done = Simulation([*FIVE, VOTE]).run()
    assert done.plays[-1].result.name == "vote"
    assert [one.name for one in done.plays[-1].voters] == ["forest", "svm", "logistic", "tree"]
    assert winner(list(done.results.values())).name == "vote"
    alone = Simulation([BASELINE, FIVE[1], VOTE]).run()
    assert alone.results["vote"].state == "out"


def test_with_a_limit_the_strong_and_cheap_come_first_on_few_rows():
    done = Simulation(FIVE, rows=40_000, limit=3000.0).run()
    first = done.names(rows=FIRST_ROWS)
    assert first[:5] == ["baseline", "logistic", "svm", "tree", "forest"]
    rows = [play.folds.rows for play in done.plays if play.result.name == "forest"]
    assert rows == sorted(rows)
    assert set(rows) == {2500, 10_000, 40_000}


def test_the_better_half_advances():
    """Successive halving: of eight, four play the second round, and at least three every later one."""
    kinds = [BASELINE, *(Kind(f"k{number}", number / 10, 0.01, tried=1) for number in range(1, 8))]
    done = Simulation(kinds, rows=100_000, limit=600.0).run()
    assert len(set(done.names(rows=2500))) == 8
    assert list(dict.fromkeys(done.names(rows=10_000))) == ["k7", "k6", "k5", "k4"]
    assert list(dict.fromkeys(done.names(rows=40_000)))[:FEWEST] == ["k7", "k6", "k5"]
    assert max(done.results.values(), key=lambda one: one.mean).name == "k7"


def test_the_strong_and_cheap_advance_as_well_since_more_rows_may_teach_them_more():
    kinds = [BASELINE, *(Kind(f"k{number}", number / 10, 0.01, tried=1) for number in range(1, 8))]
    boosting = Kind("boosting", -0.65, 0.01, turn=1, tried=1, gain=0.15)
    done = Simulation([*kinds, boosting], rows=100_000, limit=15.0).run()
    first = {
        one.result.name: known.score for one in done.plays if one.folds.rows == 2500 for known in [done.outcome(one)]
    }
    assert sorted(first, key=first.__getitem__).index("boosting") == 4
    assert max(done.results.values(), key=lambda one: one.mean).name == "boosting"


def test_settings_around_the_best_are_tried_where_time_is_left():
    done = Simulation(FIVE, rows=8000, limit=10_000.0).run()
    assert done.results["forest"].machine.number == 9
    assert {one.state for one in done.results.values()} == {"done"}


def test_who_cannot_win_any_more_leaves_its_time_to_the_others():
    """Under a limit: it stops after a fold, and plays the others when all else is done."""
    kinds = [BASELINE, Kind("good", 0.9, 0.5, 1), Kind("near", 0.85, 0.5), Kind("far", 0.5, 0.5)]
    done = Simulation(kinds, rows=1000, limit=1000.0).run()
    heard = {one.name: one.remark for one in done.heard if one.state == "tried" and len(one.scores)}
    assert heard["far"] == CANNOT_WIN
    assert heard.get("near") != CANNOT_WIN
    assert {one.name: one.state for one in done.results.values()}["far"] == "done"
    order = [(one.result.name, one.setting.number, one.fold) for one in done.plays]
    assert order.index(("near", 0, 4)) < order.index(("far", 0, 1))
    assert order.index(("good", 9, 4)) < order.index(("far", 0, 1))


def test_a_candidate_that_fails_or_cannot_run_is_out_and_the_others_play_on():
    kinds = [*FIVE, Kind("broken", 0.9, fails=True), Kind("wide", 0.9, reason="it needs a dense table")]
    for limit in (np.inf, 1000.0):
        done = Simulation(kinds, limit=limit).run()
        assert (done.results["broken"].state, done.results["broken"].remark) == ("out", "it fails")
        assert (done.results["wide"].state, done.results["wide"].remark) == ("out", "it needs a dense table")
        assert len(done.names()) > 20
        assert done.names().count("broken") == 1


def test_a_slow_candidate_plays_on_once_the_others_are_done():
    """Its turn is too short for all folds; what was played is not played again."""
    kinds = [BASELINE, Kind("quick", 0.5, 0.01, 1), Kind("slow", 0.9, 35.0, tried=1)]
    done = Simulation(kinds, rows=1000, limit=260.0).run()
    told = [(one.state, one.remark) for one in done.heard if one.name == "slow" and one.state != "playing"]
    assert told == [("tried", ""), ("tried", SLOW), ("done", "")]
    assert winner(list(done.results.values())).name == "slow"
    # Of the folds that were cut or refused only those are asked for again.
    scored = [fold for setting, _, fold in done.known if (setting.kind.name, setting.number) == ("slow", 0)]
    assert scored == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("limit", "waits"), [(30.0, True), (300.0, False)])
def test_who_loads_for_longer_than_its_share_waits(limit, waits):
    """No clock stops the loading of a library: where time is short, the others play before it."""
    kinds = [BASELINE, Kind("quick", 0.5, 0.01, 1), Kind("network", 0.9, 0.1, loading=6.0)]
    done = Simulation(kinds, rows=1000, limit=limit).run()
    first = next(one for one in done.heard if one.name == "network")
    assert (first.remark == SLOW) is waits
    assert (done.names()[2] == "network") is not waits


def test_what_is_done_is_not_undone_by_settings_that_were_cut():
    schedule = Simulation([BASELINE]).schedule
    whole = CandidateResult("svm", "SVM", 1, scores=np.full(5, 0.6), state="done")
    cut = replace(whole, scores=np.array([0.5]), state="tried", remark=OVER)
    heard = []
    schedule._changed = heard.append
    for result in (cut, whole, cut, replace(whole, scores=np.full(5, 0.7))):
        schedule._announce(result)
    assert [one.mean for one in heard] == pytest.approx([0.5, 0.6, 0.7])


def test_the_better_of_the_settings_goes_on_first():
    best = Simulation([BASELINE]).schedule._best_settings
    assert best([[FoldResult(0.1)], [FoldResult(0.2)], [], [FoldResult(0.3)]]) == [3, 1]
    assert best([[], []]) == [0]


@pytest.mark.parametrize("limit", [np.inf, 1000.0])
def test_it_goes_on_from_what_was_played_before(limit):
    """As from a journal: an interrupted contest and its second half play what the whole one plays, and end alike."""
    whole = Simulation([*FIVE, VOTE], limit=limit).run()
    first = Simulation([*FIVE, VOTE], limit=limit).run(until=11)
    assert first.schedule.ended == "interrupted"
    second = Simulation([*FIVE, VOTE], limit=limit, known=first.known).run()
    assert len(second.plays) == len(whole.plays) - 11
    told = [{name: one.to_dict() for name, one in run.results.items()} for run in (whole, second)]
    assert told[0] == told[1]


kinds = st.builds(
    lambda skill, pace, turn, power, tried: Kind("", skill, pace, turn, power, tried),
    st.floats(0.0, 1.0),
    st.floats(0.001, 30.0),
    st.integers(1, 3),
    st.sampled_from([0.5, 1.0, 1.5, 2.0]),
    st.integers(1, 3),
)
fields = st.lists(kinds, min_size=1, max_size=6).map(
    lambda found: [BASELINE, *(replace(kind, name=f"k{number}") for number, kind in enumerate(found)), VOTE]
)


@settings(max_examples=60, deadline=None)
@given(fields, st.integers(100, 100_000), st.floats(5.0, 5000.0), st.floats(0.5, 2.0))
def test_properties_of_every_contest_with_a_limit(candidates, rows, limit, longer):
    done = Simulation(candidates, rows, limit, longer=longer).run()
    # It ends in time for the files; an encoding that has begun is not stopped.
    unstoppable = rows / 1e5 + 0.2
    assert done.now <= limit - done.budget.files + unstoppable
    # Time is kept for the refit of the best, but for no more than a share of all.
    assert all(kept >= min(1.4 * fit, 0.4 * limit) for fit, kept in done.budget.kept)
    leaders = [one for one in done.results.values() if one.eligible and one.place]
    assert not leaders or max(fit for fit, _ in done.budget.kept) > 0
    # No fold begins that is expected to take longer than its turn.
    assert not any(play.limited and play.expected > limit for play in done.plays)
    # There is a result, whatever the time: the simplest has played.
    assert len(done.results["baseline"].scores)
    # Everyone has played, or it is said why not.
    for candidate in candidates:
        result = done.results.get(candidate.name)
        assert done.schedule.ended or result is not None
        assert result is None or len(result.scores) or result.remark


@settings(max_examples=40, deadline=None)
@given(fields, st.integers(100, 20_000), st.floats(5.0, 500.0))
def test_more_time_is_never_fewer_candidates(candidates, rows, limit):
    def played(seconds):
        done = Simulation(candidates, rows, seconds).run()
        return len({play.result.name for play in done.plays if not play.voters})

    assert played(100 * limit) >= played(limit)


@settings(max_examples=40, deadline=None)
@given(fields, st.integers(100, 5000))
def test_enough_time_is_as_good_as_no_limit(candidates, rows):
    limited, free = Simulation(candidates, rows, 1e9).run(), Simulation(candidates, rows).run()
    for name, result in free.results.items():
        assert limited.results[name].state == result.state
        assert limited.results[name].mean >= result.mean - 1e-9


@pytest.mark.parametrize("limit", [np.inf, 10_000.0])
def test_what_is_played_next_was_among_what_was_said_to_come(limit):
    """What it takes to keep idle cores busy; settings around the best, and votes, are told of by those before alone."""
    kinds = [BASELINE, *(Kind(f"k{number}", number / 10, 0.1) for number in range(1, 8))]
    done = Simulation(kinds, rows=20_000, limit=limit)
    schedule, said, seen, places = done.schedule, [], 0, []
    play = schedule.next()
    while play is not None:
        key = play.setting, play.folds.rows, play.fold
        if said and key not in done.known:
            seen += 1
            places += [said.index(key)] if key in said else []
        result = done.outcome(play)
        said = [(one.setting, one.folds.rows, one.fold) for one in schedule.coming()]
        said = [one for one in said if one not in done.known]
        play = schedule.next(result)
    assert seen > 30
    assert len(places) >= 0.9 * seen
    assert np.mean(np.array(places) < 2) > 0.8
