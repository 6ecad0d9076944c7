"""Whether a module is exactly the one that a twin was written for."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from torch import nn

from skipper.nets.layers import BagOfWords, ResidualBlock

BAG_OF_WORDS: Mapping[str, type[nn.Module]] = {"": BagOfWords, "words": nn.ModuleList, "words.*": nn.Embedding}
RESIDUAL_BLOCK: Mapping[str, type[nn.Module]] = {"": ResidualBlock, "widen": nn.Conv2d, "narrow": nn.Conv2d}
MLP: Mapping[str, type[nn.Module]] = {
    "": nn.Sequential,
    **{str(layer): nn.ReLU if layer % 2 else nn.Linear for layer in range(5)},
}


def within(name: str, types: Mapping[str, type[nn.Module]]) -> dict[str, type[nn.Module]]:
    """The types of a module that is the submodule ``name`` of another."""
    return {f"{name}.{part}" if part else name: kind for part, kind in types.items()}


def has_exact_types(module: nn.Module, types: Mapping[str, type[nn.Module]]) -> bool:
    """Whether a module and all its submodules have exactly these types, and nothing intercepts their calls.

    ``types`` maps names of submodules to types: "" is the module itself, "*" matches any part of a name. A subclass, an
    added layer or a hook may compute something else. Twins run on the CPU, so modules elsewhere have none.
    """
    parts, patterns = dict(module.named_modules()), [name for name in types if "*" in name]
    for name, part in parts.items():
        known = name if name in types else next((each for each in patterns if fnmatchcase(name, each)), None)
        if known is None or type(part) is not types[known] or is_intercepted(part):
            return False
    if any(parameter.device.type != "cpu" for parameter in module.parameters()):
        return False
    return all(name in parts or any(fnmatchcase(part, name) for part in parts) for name in types)


def is_intercepted(module: nn.Module) -> bool:
    """Whether calls of a module run more than the methods of its class."""
    return "forward" in vars(module) or bool(module._forward_hooks) or bool(module._forward_pre_hooks)
