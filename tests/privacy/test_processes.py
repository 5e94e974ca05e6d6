"""Other processes, and children of a fork, draw noise of their own."""

import json
import os
import subprocess
import sys

import pytest

from dpals.release.accounting import Budget
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

SCRIPT = """
import json, os, sys
from dpals.release.accounting import Budget
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism
from dpals.release.noise import NoiseStream

query, cost = Query("noise of another process", 4, 1.0), 2**60

def outcome(work):
    try:
        work()
        return "worked"
    except RuntimeError:
        return "refused"

def write(**facts):
    print(json.dumps(facts))
    sys.stdout.flush()

mechanism, stream = Mechanism(Budget.of_cost(4 * cost)), NoiseStream()
write(noise=mechanism.release(query, (), cost).ravel().tolist())
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:
        write(stream=outcome(lambda: stream.words(4)), mechanism=outcome(lambda: mechanism.release(query, (), cost)))
        write(noise=Mechanism(Budget.of_cost(4 * cost)).release(query, (), cost).ravel().tolist())
        os._exit(0)
    os.waitpid(child, 0)
    write(noise=mechanism.release(query, (), cost).ravel().tolist())
"""
BROKEN = """
import dpals.release.noise as noise
noise.NoiseStream.__init__ = lambda stream: stream._start(bytes(32))
noise.NoiseStream.words = lambda stream, count: noise.np.frombuffer(stream._cipher.update(bytes(8 * count)), "<u8")
noise.os.getpid = lambda: 1
"""


def noise_of_processes(first=""):
    """Numbers of this process, of two others and of their children; and whether what children inherit worked."""
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-W", "ignore", "-c", first + SCRIPT]
    started = [
        subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    facts = [json.loads(line) for process in started for line in process.communicate()[0].splitlines()]
    assert [process.returncode for process in started] == [0, 0]
    here = Mechanism(Budget.of_cost(2**62)).release(Query("noise of this process", 4, 1.0), (), 2**60)
    noise = [*here.ravel().tolist(), *(number for each in facts for number in each.get("noise", []))]
    inherited = [each[kind] for each in facts if "mechanism" in each for kind in ("stream", "mechanism")]
    return noise, inherited


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_other_processes_draw_other_noise_and_a_forked_one_cannot_repeat_its_parents():
    noise, inherited = noise_of_processes()
    assert len(noise) == len(set(noise)) == 28
    assert inherited == ["refused"] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_processes_that_would_repeat_noise_are_noticed():
    noise, inherited = noise_of_processes(BROKEN)
    assert len(noise) - len(set(noise)) == 20
    assert inherited == ["worked"] * 4
