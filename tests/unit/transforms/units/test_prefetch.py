"""Items come in order, made by another thread, no further ahead than allowed; errors come in their place."""

import threading

import pytest

from transforms.units.prefetch import prefetch


def failing(made, last):
    for number in range(last):
        made.append(number)
        yield number
    raise ValueError("there is no more")


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_items_come_in_order_and_an_error_after_them(depth):
    items = prefetch(failing([], 3), depth=depth)
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="no more"):
        next(items)


@pytest.mark.parametrize("depth", [1, 2])
def test_no_more_than_the_depth_is_made_before_its_time(depth):
    made = []
    items = prefetch(failing(made, 100), depth=depth)
    for number in range(10):
        assert next(items) == number
        assert len(made) <= number + 1 + depth
    items.close()
    assert len(made) <= 10 + depth


def test_items_are_made_in_another_thread_which_ends():
    threads = []

    def numbers():
        for number in range(3):
            threads.append(threading.current_thread())
            yield number

    assert list(prefetch(numbers())) == [0, 1, 2]
    assert len(set(threads)) == 1
    assert threads[0] is not threading.current_thread()
    assert not threads[0].is_alive()
