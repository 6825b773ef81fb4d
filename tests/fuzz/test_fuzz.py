"""Three hundred nasty small problems: every fit ends with an answer that holds, or with a sentence."""

import pytest

from tests.fuzz import cases, checks

BATCHES, EACH = 30, 10


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_fit_is_an_answer_or_a_sentence(batch):
    wrong = []
    for seed in range(batch * EACH, (batch + 1) * EACH):
        case = cases.without_clock(cases.make(seed))
        _, found = checks.run(case, extras=1)
        wrong += [f"{kind}: {sentence} ({case})" for kind, sentence in found]
    assert not wrong, "\n".join(wrong)


def test_a_seed_stands_for_one_case():
    assert str(cases.make(5)) == str(cases.make(5))
    assert len({str(cases.make(seed)).split(":", 1)[1] for seed in range(50)}) == 50
