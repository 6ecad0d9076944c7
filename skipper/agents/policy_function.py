"""Other people's policies as agents: any function from a batch of observations to actions can be evaluated."""

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from skipper.runtime.checks import nearest_name
from skipper.types import Agent, Array, Decision, EnvironmentSpec, TimeStep

Policy = Callable[[Array], Any]  # (B, W, H, C) observations -> (B,) whole numbers
WANTED = (
    "wanted a function of one argument, observations (B, W, H, C), that returns B actions; or one without arguments "
    "that returns such a function; or, with --weights, one that takes their path and returns it"
)


class PolicyFunction:
    """Acts as a function says, after checking what it returns."""

    def __init__(self, policy: Policy, name: str, actions: int) -> None:
        self._policy, self._name, self._actions = policy, name, actions

    def act(self, timestep: TimeStep) -> Decision:
        """The actions that the function returns; it gets a copy of the observations."""
        count = len(timestep.observation)
        actions = np.asarray(self._policy(timestep.observation.copy()))
        wanted = (
            f"{self._name}: wanted {count} actions, whole numbers from 0 to {self._actions - 1} of shape ({count},)"
        )
        if actions.shape != (count,):
            raise ValueError(f"{wanted}, got shape {actions.shape}")
        if not np.issubdtype(actions.dtype, np.integer):
            raise ValueError(f"{wanted}, got {actions.dtype}")
        if count and not (actions.min() >= 0 and actions.max() < self._actions):
            raise ValueError(f"{wanted}, got {actions.min()} to {actions.max()}")
        return Decision(actions.astype(np.int64))


def load_policy(name: str, weights: Path | None = None) -> Callable[[EnvironmentSpec, np.random.Generator], Agent]:
    """How to build the agent of the policy ``module:function``: anew for every evaluation set, if it has a factory.

    A function of one argument is the policy itself. One without arguments, or of ``weights``, makes the policy; that
    of a policy with memory is called for every set, and row i of all its batches is the same episode.
    """
    found = _find(name)
    is_factory = weights is not None or _takes(found)
    arguments = () if weights is None else (str(weights),)
    if not (_takes(found, *arguments) if is_factory else _takes(found, "observations") and not isinstance(found, type)):
        raise ValueError(f"--policy {name}: {WANTED}")

    def build(spec: EnvironmentSpec, _: np.random.Generator) -> Agent:
        policy = found(*arguments) if is_factory else found
        if not callable(policy):
            raise ValueError(f"--policy {name}: {WANTED}; this one returned {type(policy).__name__}")
        return PolicyFunction(policy, name, spec.actions)

    return build


def _find(name: str) -> Any:
    """The object that ``module:function`` names, with modules of the current folder first, as for ``python -m``."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ValueError(f"--policy wants module:function, such as my_agent:act, got {name!r}")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ValueError(f"--policy: {module} needs a module that is not installed: {error.name}") from error
        raise ValueError(
            f"--policy: there is no module {error.name!r}, neither in this folder nor among the installed packages"
        ) from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = [each for each in dir(found) if not each.startswith("_") and callable(getattr(found, each))]
            raise ValueError(f"--policy: {nearest_name(f'function of {module}', part, names)}")
        found = getattr(found, part)
    return found


def _takes(found: Any, *arguments: str) -> bool:
    """Whether something can be called with as many arguments."""
    try:
        inspect.signature(found).bind(*arguments)
    except (TypeError, ValueError):  # too few or too many; nothing to call, or nothing known of it
        return False
    return True
