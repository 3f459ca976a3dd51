"""An explainer in a worker: opened once per process, its predictor called as it can be."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pandas as pd
import pytest

from counting_server import CountingServer
from engine_cases import assert_same_answers, constraints, explainer, one_call, people
from engine_cases import load_predictor as load_score
from mcce import MCCE
from mcce.execution import shipment as module
from mcce.execution.partitions import PartitionTask, columns_of
from mcce.execution.shipment import KEPT, Shipment
from mcce.predictors import Remote

N_THREADS = 4


class Counted:
    """A predictor that counts the threads that are inside at the same time."""

    def __init__(self, *, thread_safe):
        self.thread_safe = thread_safe
        self.score, self.inside, self.most = load_score(), [], 0

    def __call__(self, frame):
        self.inside.append(1)
        self.most = max(self.most, len(self.inside))
        time.sleep(0.01)
        scores = self.score(frame)
        self.inside.pop()
        return scores


def task_of(load_predictor):
    rows = people(40)
    shipment = Shipment(Shipment.pack(explainer()).content, load_predictor)
    return rows, PartitionTask.plan(
        explainer(), shipment, columns_of(rows), "customer", constraints=constraints()
    )


def in_threads(function, items):
    """Results for items, of threads that start together."""
    start = threading.Barrier(len(items))

    def begin(item):
        start.wait()
        return function(item)

    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(begin, items))


@pytest.mark.parametrize("thread_safe", [False, True])
def test_a_predictor_is_called_by_one_thread_at_a_time_unless_it_is_safe(thread_safe):
    predictor = Counted(thread_safe=thread_safe)
    rows, task = task_of(lambda: predictor)

    tables = in_threads(task.frame, [rows] * N_THREADS)

    assert (predictor.most > 1) == thread_safe
    for table in tables:
        assert_same_answers(table, one_call("paper", rows))


def test_threads_open_one_explainer_with_one_predictor():
    loaded = []
    shipment = task_of(lambda: loaded.append(load_score()) or loaded[-1])[1].shipment

    def open_it(_):
        with shipment.opened() as opened:
            return opened

    opened = in_threads(open_it, range(N_THREADS))

    assert len(loaded) == len({id(one) for one in opened}) == 1


def test_an_explainer_in_use_is_not_opened_twice_however_many_others_are():
    first, *others = [task_of(load_score)[1].shipment for _ in range(KEPT + 2)]

    with first.opened() as before:
        for other in others:
            with other.opened():
                pass
        with first.opened() as again:
            assert again is before

    assert len(module._kept) == KEPT


def test_an_explainer_that_cannot_be_opened_is_tried_again():
    tried = []

    def load_once_more():
        tried.append(1)
        if len(tried) == 1:
            raise OSError("a drive")
        return load_score()

    shipment = task_of(load_once_more)[1].shipment

    with pytest.raises(OSError, match="a drive"), shipment.opened():
        pass
    with shipment.opened():
        pass
    assert len(tried) == 2


def test_threads_share_the_limits_of_a_server():
    bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})

    def score(rows):
        return [row["salary"] for row in rows]

    with CountingServer(score, lambda _: time.sleep(0.02) or 200) as server:
        model = MCCE(Remote(server.url), (70, 100), random_state=0).fit(bank)
        shipment = Shipment.pack(model, partial(Remote, server.url, in_flight=2, batch_size=1))
        rows = bank.assign(customer=range(20))
        task = PartitionTask.plan(model, shipment, columns_of(rows), "customer")
        in_threads(task.frame, [rows] * N_THREADS)

    assert max(server.at_a_time) == 2
