"""Fields of an Export that no bundle can have are named."""

import dataclasses
import re

import pytest
from torch import nn

from .inputs import Input, sequence
from .module import Export, Step
from .refusal import Refusal

GOOD = Export(name="x", module=nn.Identity(), inputs=sequence("mel", "f32", "T_mel", 4, lengths="mel_lengths"), buckets=[{"T_mel": 8}], features={})


@pytest.mark.parametrize(("change", "message"), [
    ({"module": nn.Identity}, "module is the class Identity"),
    ({"name": ""}, "name is ''"),
    ({"loss": "l1"}, "loss is 'l1'"),
    ({"features": None}, "features is None"),
    ({"features": nn}, "features is the Python module torch.nn"),
    ({"features": []}, "features is of the type list"),
    ({"inputs": [Input(None, "f32", ("B",))]}, "the name of inputs[0] is None"),
    ({"inputs": [GOOD.inputs]}, "inputs[0] is [Input("),
    ({"inputs": [GOOD.inputs[0]]}, "lengths 'mel_lengths' is no input"),
    ({"inputs": [*GOOD.inputs, GOOD.inputs[0]]}, "inputs have one name twice: mel, mel_lengths, mel"),
    ({"inputs": [Input("mel", "f64", ("B",))]}, "input mel has the type 'f64'"),
    ({"inputs": [Input("mel", "f32", ("B", -1))]}, "input mel has the shape ['B', -1]"),
    ({"inputs": [Input("mel", "f32", ("B",), lengths="n")]}, "input mel has lengths 'n'"),
    ({"inputs": [Input("ids", "i32", ("B",), below=0)]}, "input ids has below 0"),
    ({"inputs": [Input("ids", "i32", ("B",), origin="table")]}, "input ids has the origin 'table'"),
    ({"inputs": [Input("ids", "i64", ("B",), origin="column", column="ids")]}, "input ids of origin column is i64"),
    ({"inputs": [Input("ids", "i32", ("B",), column="ids")]}, "input ids has column and the origin dataset"),
    ({"inputs": [Input("ids", "i32", ("B",), origin="column")]}, "input ids of origin column has the column None"),
    ({"inputs": [Input("ids", "i32", ("B",), origin="file", column="ids", vocabulary={"a": 0})]}, "input ids of origin file has vocabulary"),
    ({"inputs": [Input("ids", "i32", ("B",), origin="column", column="ids", vocabulary=["a"])]}, "the vocabulary of input ids is not symbols"),
    ({"inputs": [Input("ids", "i32", ("B",), origin="column", column="ids", split="comma")]}, "input ids has split 'comma'"),
    ({"buckets": []}, "buckets is no list of sizes"),
    ({"buckets": [{"T": 8}]}, "buckets[0] has no size of T_mel (a dimension of mel)"),
    ({"buckets": [{"T_mel": 8}, 8]}, "buckets[1] is 8"),
    ({"buckets": [{"T_mel": 0.5}]}, "buckets[0] has the size T_mel = 0.5"),
], ids=lambda x: x if isinstance(x, str) else "")
def test_refuses(change, message):
    with pytest.raises(Refusal, match=re.escape(message)) as caught:
        Step(dataclasses.replace(GOOD, **change))
    assert caught.value.hint
