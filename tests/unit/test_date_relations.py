"""Dates, their parts, days between two and limits of a number: found in rows, kept in answers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, load

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


@cache
def stays(n_rows=900, seed=0):
    """Bookings with columns of dates, and columns that follow from them."""
    random = np.random.default_rng(seed)
    days = pd.to_timedelta(random.integers(0, 700, n_rows), unit="D")
    arrival = pd.Series(pd.Timestamp("2023-02-01") + days)
    frame = pd.DataFrame({"arrival": arrival, "adults": random.integers(1, 5, n_rows)})
    frame["nights"] = random.integers(1, 15, n_rows)
    frame["departure"] = arrival + pd.to_timedelta(frame["nights"], unit="D")
    frame["paid_on"] = frame["departure"] - pd.to_timedelta(random.integers(0, 9, n_rows), unit="D")
    frame["month"], frame["weekday"] = arrival.dt.month_name(), arrival.dt.day_of_week
    frame["week"] = arrival.dt.strftime("%V").astype("int64")
    frame["weekend"] = np.where(frame["weekday"] > 4, "yes", "no")
    return frame.assign(price=random.uniform(40, 200, n_rows).round(2))


def as_text(frame):
    dates = ["arrival", "departure", "paid_on"]
    return frame.assign(**{name: frame[name].dt.strftime("%Y-%m-%d") for name in dates})


def as_columns(frame):
    """The arrival as a year, the name of a month and a day; no departure."""
    own = frame["arrival"].dt
    return frame.assign(year=own.year, day=own.day).drop(columns=["arrival", "departure"])


def keeps_dates(frame):
    """Which rows keep all that was planted."""
    arrival, departure, paid_on = map(pd.to_datetime, (frame[name] for name in DATES))
    kept = (departure - arrival).dt.days == frame["nights"]
    kept &= (arrival.dt.month_name() == frame["month"]) & (paid_on <= departure)
    kept &= arrival.dt.strftime("%V").astype("int64") == frame["week"]
    kept &= (frame["weekend"] == "yes") == (frame["weekday"] > 4)
    return kept & (arrival.dt.day_of_week == frame["weekday"])


DATES = ("arrival", "departure", "paid_on")


def score(frame):
    value = 0.2 * frame["nights"] + 0.3 * (frame["weekend"] == "yes") + frame["week"] / 50
    return np.asarray(1 / (1 + np.exp(3.2 - value - 0.2 * frame["adults"])), dtype=float)


def fitted(frame, **settings):
    settings = {"search": "sparse", "n_samples": 100, "random_state": 0} | settings
    return MCCE(score, (0.5, 1.0), **settings).fit(frame)


@pytest.mark.parametrize("write", [stays, lambda: as_text(stays())], ids=["dates", "texts"])
def test_parts_of_dates_and_days_between_them_are_found(write):
    table = fitted(write()).relations_

    assert {
        "nights = days(departure - arrival)",
        "paid_on <= departure",
        "month(arrival) determines month",
        "weekday(arrival) determines weekday",
        "week(arrival) determines week",
        "weekend = 'yes' if and only if weekday in [5, 6]",
    } <= set(table["relation"])
    assert table["enforced"].all()


def test_a_year_a_month_and_a_day_are_a_date():
    table = fitted(as_columns(stays())).relations_

    assert {
        "week(date(year, month, day)) determines week",
        "weekday(date(year, month, day)) determines weekday",
        "days(paid_on - date(year, month, day)) <= nights",
    } <= set(table["relation"])


def test_no_answer_breaks_what_follows_from_dates(tmp_path):
    explainer = fitted(as_text(stays()))
    declined = as_text(stays())[score(stays()) < 0.5].head(12)
    explainer.save(tmp_path / "stays.mcce")

    result = explainer.explain(declined)

    assert len(result.frame) == len(declined)
    assert keeps_dates(result.frame).all()
    again = load(tmp_path / "stays.mcce", score)
    assert again.relations_.equals(explainer.relations_)
    assert again.explain(declined).frame.equals(result.frame)


def test_permuted_dates_have_no_relations():
    for write in (stays, lambda: as_text(stays()), lambda: as_columns(stays())):
        random = np.random.default_rng(0)
        frame = write()

        permuted = {name: frame[name].to_numpy()[random.permutation(900)] for name in frame}

        assert len(fitted(pd.DataFrame(permuted)).relations_) == 0


def test_a_part_of_a_missing_date_may_be_anything():
    frame = stays()
    frame = frame.assign(arrival=frame["arrival"].mask(np.arange(900) % 10 == 0))

    table = fitted(frame).relations_

    assert "paid_on <= departure" in set(table["relation"])
    assert "week(arrival) determines week" not in set(table.loc[table["enforced"], "relation"])


def houses(n_rows=1200, seed=0):
    random = np.random.default_rng(seed)
    garage = np.where(random.random(n_rows) < 0.1, 0, random.uniform(12, 60, n_rows).round(2))
    area = random.normal(140, 40, n_rows).clip(30)
    size = np.searchsorted([90, 150], area)
    frame = pd.DataFrame({"garage": garage, "area": area, "rooms": random.integers(1, 8, n_rows)})
    frame["has_garage"] = np.where(garage > 0, "yes", "no")
    return frame.assign(size=np.array(["small", "medium", "large"])[size])


def test_flags_and_classes_of_a_number_follow_it():
    flats = houses()
    good = lambda rows: rows["area"] / 100 + rows["garage"] / 60
    explainer = MCCE(good, (1.9, 9.0), search="sparse", n_samples=100, random_state=0).fit(flats)

    result = explainer.explain(flats[good(flats) < 1.9].head(15))

    [classes] = [name for name in explainer.relations_["relation"] if "determines size" in name]
    limits = [float(limit) for limit in classes.split(" determines")[0][7:].split(", ")]
    np.testing.assert_allclose(limits, [90, 150], atol=1)
    frame = result.frame
    assert len(frame) == 15
    assert ((frame["garage"] > 0) == (frame["has_garage"] == "yes")).all()
    expected = np.array(["small", "medium", "large"])[np.searchsorted(limits, frame["area"])]
    assert (frame["size"] == expected).all()
