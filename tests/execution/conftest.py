"""A cluster of two processes of one thread each, on this machine."""

import pytest


@pytest.fixture(scope="package")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as local:
        yield local


@pytest.fixture(scope="package")
def client(cluster):
    from distributed import Client

    with Client(cluster, set_as_default=False) as own:
        yield own
