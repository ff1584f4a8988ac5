"""The optimizer graphs against PyTorch."""

import numpy as np
import onnxruntime as ort
import pytest
import torch

from . import optimizer, session

GRAPHS = {name: ort.InferenceSession(optimizer.build(name).SerializeToString(), providers=["CPUExecutionProvider"]) for name in optimizer.GRAPHS}
SPEC = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01, "max_norm": 1.0}


def scalars(step: int, norm, finite=True, grad_scale: float = 1.0, **spec) -> dict:
    feed = {name: np.array(value, np.float64) for name, value in {**SPEC, **spec}.items()}
    return {**feed, "step": np.array(step, np.int64), "grad_scale": np.array(grad_scale, np.float32),
            "grad_norm": np.array(norm, np.float32), "finite": np.array(finite)}


def vectors(seed: int, size: int = 5000) -> dict:
    random = np.random.default_rng(seed)
    state = {name: random.standard_normal(size, np.float32) for name in ("param", "exp_avg", "exp_avg_sq")}
    state["exp_avg_sq"] **= 2
    return state


def norm(grads, loss=1.0, grad_scale=1.0):
    feed = {"grads": np.asarray(grads, np.float32), "loss": np.float32(loss), "grad_scale": np.float32(grad_scale)}
    return session.run(GRAPHS["norm"], feed).values()


@pytest.mark.parametrize("max_norm", [1.0, 0.0])
def test_adamw_is_pytorchs(max_norm):
    random = np.random.default_rng(3)
    start = random.standard_normal(3000, np.float32)
    theirs = torch.nn.Parameter(torch.tensor(start))
    adamw = torch.optim.AdamW([theirs], lr=SPEC["lr"], weight_decay=SPEC["weight_decay"])
    ours = {"param": start.copy(), "exp_avg": np.zeros_like(start), "exp_avg_sq": np.zeros_like(start)}
    for step in range(1, 21):
        # By turns far above and far below the clipping norm.
        gradient = random.standard_normal(3000, np.float32) * np.float32(3.0 if step % 2 else 1e-4)
        theirs.grad = torch.tensor(gradient)
        their_norm = torch.nn.utils.clip_grad_norm_([theirs], max_norm or float("inf"))
        adamw.step()
        our_norm, finite = norm(gradient)
        assert finite and our_norm == pytest.approx(their_norm.item(), rel=1e-6)
        session.in_place(GRAPHS["adamw"], {**scalars(step, our_norm, max_norm=max_norm), "grad": gradient}, ours)
    theirs_by_name = {"param": theirs.detach(), **adamw.state[theirs]}
    for name, x in ours.items():
        want = theirs_by_name[name].numpy()
        assert np.linalg.norm(x - want) <= 1e-6 * np.linalg.norm(want), name


@pytest.mark.parametrize("finite", [True, False])
def test_adamw_in_place_equals_out_of_place(finite):
    state, gradient = vectors(1), np.random.default_rng(2).standard_normal(5000, np.float32)
    feed = {**scalars(7, 70.0, finite), "grad": gradient}
    apart = session.run(GRAPHS["adamw"], {**feed, **state})
    together = {name: x.copy() for name, x in state.items()}
    session.in_place(GRAPHS["adamw"], feed, together)
    for name in state:
        assert together[name].tobytes() == apart[name + "_out"].tobytes()
        assert (together[name].tobytes() == state[name].tobytes()) == (not finite)


def test_skipped_update_keeps_every_bit():
    state = vectors(4)
    state["param"][0] = -0.0
    state["exp_avg"][:3] = [-0.0, 1e-42, 0.0]
    before = {name: x.copy() for name, x in state.items()}
    gradient = np.full(5000, np.nan, np.float32)
    gradient[::2] = np.inf
    our_norm, finite = norm(gradient)
    session.in_place(GRAPHS["adamw"], {**scalars(3, our_norm, finite), "grad": gradient}, state)
    assert all(state[name].tobytes() == before[name].tobytes() for name in state)


def test_adamw_scales_the_gradient():
    state, gradient = vectors(5), np.random.default_rng(6).standard_normal(5000, np.float32)
    halved = session.run(GRAPHS["adamw"], {**scalars(2, 1.0, max_norm=0), "grad": gradient / 2, **state})
    scaled = session.run(GRAPHS["adamw"], {**scalars(2, 1.0, max_norm=0, grad_scale=0.5), "grad": gradient, **state})
    assert all(np.array_equal(halved[name], scaled[name]) for name in halved)


@pytest.mark.parametrize(("gradient", "loss", "scale", "want"), [
    ([3.0, 4.0], 1.0, 0.5, True),
    ([3.0, np.nan], 1.0, 1.0, False),
    ([3.0, -np.inf], 1.0, 1.0, False),
    ([3e30, 4.0], 1.0, 1.0, False),
    ([3.0, 4.0], np.nan, 1.0, False),
    ([3.0, 4.0], -np.inf, 1.0, False),
    ([3.0, 4.0], 1.0, 0.0, False),
    ([0.0, 0.0], 0.0, 1.0, True),
])
def test_norm_tells_what_is_finite(gradient, loss, scale, want):
    value, finite = norm(gradient, loss, scale)
    assert finite == want
    if want:
        assert value == pytest.approx(np.hypot(*gradient) * scale)


def test_accumulate():
    gradient = np.array([1.0, -2.0, 3.0], np.float32)
    # What the vector held before the first micro-batch must not matter.
    acc = np.array([np.nan, np.inf, 5.0], np.float32)
    session.in_place(GRAPHS["accumulate"], {"grads": gradient, "weight": np.float32(2), "first": np.array(True)}, {"acc": acc})
    np.testing.assert_array_equal(acc, 2 * gradient)
    session.in_place(GRAPHS["accumulate"], {"grads": gradient, "weight": np.float32(3), "first": np.array(False)}, {"acc": acc})
    np.testing.assert_array_equal(acc, 5 * gradient)
