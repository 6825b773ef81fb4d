"""Latitudes and longitudes are known by their names and ranges."""

import pytest

import empirisk as er
from empirisk.tables.understanding.coordinates import coordinate_pairs

NORTH, EAST = [48.1, 47.9, 50.3, 51.0] * 5, [11.5, 120.6, 8.2, -9.0] * 5
TARGET = [1.0, 2.5, 3.5, 4.0] * 5


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("latitude", "longitude"), True),
        (("Lat", "Lng"), True),
        (("LAT", "LONG"), True),
        (("start_lat", "start_lon"), True),
        (("dropoffLatitude", "dropoffLongitude"), True),
        (("lat_of_shop", "lon_of_shop"), True),
        (("start_lat", "end_lon"), False),
        (("plate", "long"), False),
        (("lateral", "longest"), False),
        (("x", "y"), False),
    ],
)
def test_names(names, found):
    table = dict(zip(names, (NORTH, EAST), strict=True)) | {"price": TARGET}
    assert coordinate_pairs(er.tables.understand(table)) == ([names] if found else [])


def test_ranges_and_several_pairs():
    far = {"lat": [x * 10 for x in NORTH], "long": EAST}
    assert coordinate_pairs(er.tables.understand(far)) == []
    table = {"from lat": NORTH, "to lon": EAST, "to lat": NORTH[::-1], "from lon": EAST[::-1], "lat": EAST}
    assert coordinate_pairs(er.tables.understand(table)) == [("from lat", "from lon"), ("to lat", "to lon")]


def test_places_among_the_numbers_of_an_encoder():
    table = {"town": ["Ulm", "Bonn"] * 10, "lng": EAST, "lat": [None, *NORTH[1:]], "a": TARGET}
    encoder = er.tables.TableEncoder(er.tables.understand(table)).for_trees().fit(table)
    [(north, east)] = encoder.coordinate_places
    assert (encoder.names_[north], encoder.names_[east]) == ("lat", "lng")
