"""Threads of matrix products: one while it is asked for, and then as many as before."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from graphkin._support.threads import one_thread, take_one_thread


def numpy_threads() -> set[int]:
    np.ones((2, 2)) @ np.ones((2, 2))  # the library is loaded
    return {item["num_threads"] for item in threadpool_info() if item["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with threadpool_limits(2):
        yield
    torch.set_num_threads(before)


def test_one_thread_while_it_lasts() -> None:
    with one_thread():
        assert numpy_threads() == {1}
        assert torch.get_num_threads() == 1
    assert numpy_threads() == {2}
    assert torch.get_num_threads() == 2


def test_threads_are_restored_after_an_error() -> None:
    with pytest.raises(ValueError, match="broken"), one_thread():
        raise ValueError("broken")
    assert numpy_threads() == {2}
    assert torch.get_num_threads() == 2


def test_one_thread_from_now_on() -> None:
    take_one_thread()
    assert numpy_threads() == {1}
    assert torch.get_num_threads() == 1
