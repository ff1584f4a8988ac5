"""The optimizers' graphs against PyTorch."""

import numpy as np
import onnxruntime as ort
import pytest
import torch

from . import optimizer, session, updates
from .baseline import reference

GRAPHS = {name: ort.InferenceSession(optimizer.build(name).SerializeToString(), providers=["CPUExecutionProvider"]) for name in optimizer.GRAPHS}
SPECS = {
    "adamw": {"name": "adamw", "lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01, "grad_clip": 1.0},
    "sgd": {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 0.01, "grad_clip": 1.0},
    "lion": {"name": "lion", "lr": 1e-3, "betas": [0.9, 0.99], "weight_decay": 0.1, "grad_clip": 1.0},
}
MUON = {"name": "muon", "lr": 0.02, "momentum": 0.95, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1, "grad_clip": 1.0}
ADAFACTOR = {"name": "adafactor", "lr": 0.02, "beta2_decay": -0.8, "eps1": torch.finfo(torch.float32).eps, "eps2": 1e-3, "d": 1.0,
             "weight_decay": 0.1, "grad_clip": 1.0}


def scalars(spec: dict, step: int, norm, finite=True, grad_scale: float = 1.0) -> dict:
    feed = {name: np.array(value, np.float64) for name, value in {**optimizer.scalars(spec), "weight_decay": spec["weight_decay"]}.items()}
    return {**feed, "step": np.array(step, np.int64), "grad_scale": np.array(grad_scale, np.float32),
            "grad_norm": np.array(norm, np.float32), "finite": np.array(finite)}


def vectors(name: str, seed: int, size: int = 5000) -> dict:
    random = np.random.default_rng(seed)
    state = {vector: random.standard_normal(size, np.float32) for vector in ("param", *updates.STATE[name])}
    if name == "adamw":
        state["exp_avg_sq"] **= 2
    return state


def norm(grads, loss=1.0, loss_weight=1.0, summed=False, others=0.0):
    feed = {"grads": np.asarray(grads, np.float32), "others": np.float32(others), "loss": np.float32(loss), "loss_weight": np.float32(loss_weight), "summed": np.array(summed)}
    return session.run(GRAPHS["norm"], feed).values()


@pytest.mark.parametrize("grad_clip", [1.0, 0.0])
@pytest.mark.parametrize("change", [
    pytest.param({"name": "adamw"}, id="adamw"),
    pytest.param({"name": "sgd"}, id="sgd"),
    pytest.param({"name": "sgd", "weight_decay": 0.0}, id="sgd without decay"),
    pytest.param({"name": "sgd", "momentum": 0.0}, id="sgd without momentum"),
    pytest.param({"name": "lion"}, id="lion"),
])
def test_update_is_pytorchs(change, grad_clip):
    spec = {**SPECS[change["name"]], **change, "grad_clip": grad_clip}
    random = np.random.default_rng(3)
    start = random.standard_normal((60, 50), np.float32)
    module = torch.nn.Linear(50, 60, bias=False)
    theirs = module.weight
    theirs.data[...] = torch.tensor(start)
    update = reference.optimizer(module, spec)
    ours = {"param": start.ravel().copy(), **{name: np.zeros(start.size, np.float32) for name in updates.STATE[spec["name"]]}}
    for step in range(1, 21):
        # By turns far above and far below the clipping norm.
        gradient = random.standard_normal(start.shape, np.float32) * np.float32(3.0 if step % 2 else 1e-4)
        theirs.grad = torch.tensor(gradient)
        their_norm = torch.nn.utils.clip_grad_norm_([theirs], grad_clip or float("inf"))
        update.step()
        our_norm, scale, finite = norm(gradient.ravel())
        assert finite and scale == 1 and our_norm == pytest.approx(their_norm.item(), rel=1e-6)
        session.in_place(GRAPHS[spec["name"]], {**scalars(spec, step, our_norm), "grad": gradient.ravel()}, ours)
    # Without momentum PyTorch keeps no buffer.
    state = {name: x for name, x in update.state[theirs].items() if name in ours and x is not None}
    assert set(state) == (set() if spec.get("momentum") == 0 else set(updates.STATE[spec["name"]]))
    for name, want in {"param": theirs.detach(), **state}.items():
        want = want.numpy().ravel()
        assert np.linalg.norm(ours[name] - want) <= 1e-6 * np.linalg.norm(want), name


def train_beside(spec: dict, shape: tuple[int, ...], steps: int = 25, rounded: bool = False) -> tuple[dict, dict]:
    """A parameter and its state after steps of the graph that the host chooses, and after those of PyTorch."""
    random = np.random.default_rng(7)
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(torch.tensor(random.standard_normal(shape, np.float32)))
    entry = {"name": "weight", "shape": shape}
    name, theirs, update = updates.graph(spec, entry), module.weight, reference.optimizer(module, spec)
    if rounded:
        update = reference.Muon(module.named_parameters(), spec, rounded)
    rank = {"adafactor": 3, "adafactor_vector": 1}.get(name, 2)  # of the graph's tensors
    ours = {kind: np.zeros(size, np.float32) for kind, size in {"param": shape, **updates.state(spec, entry)}.items()}
    ours["param"][...] = theirs.detach().numpy()
    ours = {kind: x.reshape((-1, *x.shape[x.ndim - rank + 1:])) for kind, x in ours.items()}
    for step in range(1, steps + 1):
        gradient = random.standard_normal(shape, np.float32) * np.float32(3.0 if step % 2 else 1e-4)
        theirs.grad = torch.tensor(gradient)
        torch.nn.utils.clip_grad_norm_([theirs], spec["grad_clip"])
        update.step()
        decay = spec["weight_decay"] if len(shape) > 1 else 0.0
        feed = {**scalars({**spec, "weight_decay": decay}, step, next(iter(norm(gradient.ravel())))), "grad": gradient.reshape(ours["param"].shape)}
        if name.startswith("muon"):
            feed["adjust"] = np.array(0.2 * max(shape) ** 0.5)
        session.in_place(GRAPHS[name], feed, ours)
    return ours, {"param": theirs.detach(), **{kind: update.state[theirs][kind] for kind in ours if kind != "param"}}


def furthest(ours: dict, theirs: dict) -> float:
    return max(np.linalg.norm(ours[k].ravel() - x.numpy().ravel()) / np.linalg.norm(x.numpy()) for k, x in theirs.items())


@pytest.mark.parametrize("shape", [(24, 40), (40, 24), (32, 32), (1, 20)])
def test_muon_is_pytorchs(shape):
    exact, rounded = (furthest(*train_beside(MUON, shape, rounded=r)) for r in (False, True))
    print(f"{shape}: {exact:.1e} in f32, {rounded:.1e} in bf16")
    assert exact <= 2e-6 and rounded <= 2e-2


@pytest.mark.parametrize("change", [{}, {"eps1": 1e-2, "eps2": 10.0, "d": 1.5}], ids=["defaults", "bounded"])
@pytest.mark.parametrize("shape", [(24, 40), (6, 5, 3), (2, 3, 4, 5), (50,), ()])
def test_adafactor_is_pytorchs(shape, change):
    distance = furthest(*train_beside({**ADAFACTOR, **change}, shape))
    print(f"{shape}: {distance:.1e}")
    assert distance <= 2e-6


@pytest.mark.parametrize(("spec", "shape"), [(MUON, (8, 12)), (MUON, (12, 8)), (ADAFACTOR, (2, 8, 12)), (ADAFACTOR, (8,))])
def test_skipped_update_of_a_tensor_keeps_every_bit(spec, shape):
    random, entry = np.random.default_rng(8), {"name": "weight", "shape": shape}
    vectors = {"param": shape, **updates.state(spec, entry)}
    vectors = {kind: random.random(size, np.float32) for kind, size in vectors.items()}
    before = {kind: x.copy() for kind, x in vectors.items()}
    feed = {**scalars(spec, 3, np.nan, finite=False), "adjust": np.array(1.0), "grad": np.full(shape, np.nan, np.float32)}
    session.in_place(GRAPHS[updates.graph(spec, entry)], feed, vectors)
    assert all(vectors[kind].tobytes() == before[kind].tobytes() for kind in vectors)


@pytest.mark.parametrize("finite", [True, False])
@pytest.mark.parametrize("name", SPECS)
def test_in_place_equals_out_of_place(name, finite):
    state, gradient = vectors(name, 1), np.random.default_rng(2).standard_normal(5000, np.float32)
    feed = {**scalars(SPECS[name], 7, 70.0, finite), "grad": gradient}
    apart = session.run(GRAPHS[name], {**feed, **state})
    together = {vector: x.copy() for vector, x in state.items()}
    session.in_place(GRAPHS[name], feed, together)
    for vector in state:
        assert together[vector].tobytes() == apart[vector + "_out"].tobytes()
        assert (together[vector].tobytes() == state[vector].tobytes()) == (not finite)


@pytest.mark.parametrize("name", SPECS)
def test_skipped_update_keeps_every_bit(name):
    state = vectors(name, 4)
    state["param"][0] = -0.0
    state[updates.STATE[name][0]][:3] = [-0.0, 1e-42, 0.0]
    before = {vector: x.copy() for vector, x in state.items()}
    gradient = np.full(5000, np.nan, np.float32)
    gradient[::2] = np.inf
    our_norm, _, finite = norm(gradient)
    session.in_place(GRAPHS[name], {**scalars(SPECS[name], 3, our_norm, finite), "grad": gradient}, state)
    assert all(state[vector].tobytes() == before[vector].tobytes() for vector in state)


@pytest.mark.parametrize("name", SPECS)
def test_update_scales_the_gradient(name):
    spec = {**SPECS[name], "grad_clip": 0.0}
    state, gradient = vectors(name, 5), np.random.default_rng(6).standard_normal(5000, np.float32)
    halved = session.run(GRAPHS[name], {**scalars(spec, 2, 1.0), "grad": gradient / 2, **state})
    scaled = session.run(GRAPHS[name], {**scalars(spec, 2, 1.0, grad_scale=0.5), "grad": gradient, **state})
    assert all(np.array_equal(halved[vector], scaled[vector]) for vector in halved)


@pytest.mark.parametrize(("gradient", "loss", "weight", "summed", "scale", "want"), [
    ([3.0, 4.0], 1.0, 7.0, False, 1.0, True),
    ([3.0, 4.0], 1.0, 3.0, True, 1 / 3, True),
    ([3.0, np.nan], 1.0, 1.0, False, 1.0, False),
    ([3.0, -np.inf], 1.0, 1.0, False, 1.0, False),
    ([3e30, 4.0], 1.0, 1.0, False, 1.0, False),
    ([3.0, 4.0], np.nan, 1.0, False, 1.0, False),
    ([3.0, 4.0], -np.inf, 1.0, True, 1.0, False),
    ([3.0, 4.0], 1.0, 0.0, False, 0.0, False),
    ([0.0, 0.0], 0.0, 0.0, True, 0.0, False),
    ([3.0, 4.0], 1.0, np.nan, True, 0.0, False),
    ([0.0, 0.0], 0.0, 1.0, False, 1.0, True),
])
def test_norm_tells_what_is_finite(gradient, loss, weight, summed, scale, want):
    value, grad_scale, finite = norm(gradient, loss, weight, summed)
    assert finite == want and grad_scale == np.float32(scale)
    if np.isfinite(gradient).all() and max(gradient) < 1e19:
        assert value == pytest.approx(np.hypot(*gradient) * scale)


def test_squares_of_others_count():
    total = np.float32(np.nan)  # What the sum held before the first chunk must not matter.
    for chunk, first in (([3.0, 4.0], True), ([12.0], False)):
        (total,) = session.run(GRAPHS["squares"], {"grads": np.array(chunk, np.float32), "first": np.array(first), "sum": np.float32(total)}).values()
    value, _, finite = norm([84.0], others=total)
    assert finite and value == 85.0
    for others in (np.nan, np.inf):
        _, _, finite = norm([84.0], others=others)
        assert not finite


def test_accumulate():
    gradient = np.array([1.0, -2.0, 3.0], np.float32)
    # What the sums held before the first micro-batch must not matter.
    sums = {"acc": np.array([np.nan, np.inf, 5.0], np.float32), "loss_sum": np.array(np.nan, np.float32), "weight_sum": np.array(9, np.float32)}
    for weight, loss, first in ((2, 0.5, True), (3, 1.5, False)):
        feed = {"grads": gradient, "loss": np.float32(loss), "loss_weight": np.float32(weight), "first": np.array(first)}
        session.in_place(GRAPHS["accumulate"], feed, sums)
    np.testing.assert_array_equal(sums["acc"], 5 * gradient)
    assert sums["loss_sum"] == 2 * 0.5 + 3 * 1.5 and sums["weight_sum"] == 5
