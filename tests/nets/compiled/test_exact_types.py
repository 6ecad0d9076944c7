import pytest
from torch import nn

from skipper.nets.compiled.exact_types import BAG_OF_WORDS, MLP, RESIDUAL_BLOCK, has_exact_types, within
from skipper.nets.layers import BagOfWords, ResidualBlock, mlp


class Layer(nn.Linear):
    pass


def test_the_layers_that_twins_were_written_for_are_recognised():
    assert has_exact_types(mlp(2, 3, 4), MLP)
    assert has_exact_types(ResidualBlock(2), RESIDUAL_BLOCK)
    assert has_exact_types(BagOfWords((3, 4, 5), 2), BAG_OF_WORDS)
    assert has_exact_types(nn.ModuleDict({"head": mlp(2, 3, 4)}), {"": nn.ModuleDict, **within("head", MLP)})


def with_subclass(layers: nn.Sequential) -> None:
    layers[2] = Layer(3, 3)


def with_more(layers: nn.Sequential) -> None:
    layers.append(nn.ReLU())


def with_fewer(layers: nn.Sequential) -> None:
    del layers[4]


def with_other(layers: nn.Sequential) -> None:
    layers[1] = nn.GELU()


def with_hook(layers: nn.Sequential) -> None:
    layers[0].register_forward_pre_hook(lambda *_: None)


def with_forward(layers: nn.Sequential) -> None:
    layers[4].forward = lambda x: x


def with_parametrization(layers: nn.Sequential) -> None:
    nn.utils.parametrizations.weight_norm(layers[0])


@pytest.mark.parametrize(
    "change", [with_subclass, with_more, with_fewer, with_other, with_hook, with_forward, with_parametrization]
)
def test_any_change_is_noticed(change):
    layers = mlp(2, 3, 4)
    change(layers)
    assert not has_exact_types(layers, MLP)
