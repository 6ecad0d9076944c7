"""The world model: a recurrent state-space model that predicts pictures, rewards and continuation.

Time comes first: sequences are (T, B, ...). ``action[t]`` led to ``classes[t]``, to which ``reward[t]`` and
``terminal[t]`` belong.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.agents.director.adaptive import AdaptiveScale
from skipper.agents.director.config import WorldModelConfig
from skipper.agents.director.layers import (
    NORM_EPSILON,
    Dense,
    balanced_kl,
    mlp,
    mode_one_hot,
    output_layer,
    straight_through,
    symexp,
    symlog,
)
from skipper.agents.director.pictures import CellDecoder, CellEncoder, PixelDecoder, PixelEncoder, palette_of
from skipper.replay import sequences as replay
from skipper.types import EnvironmentSpec

KL_SCALES = (1e-5, 1.0)


class Sequences(NamedTuple):
    """B sequences of T states, as tensors."""

    classes: Tensor  # (T, B, W, H)
    action: Tensor  # (T, B, A) one-hot, the first one is ignored
    reward: Tensor  # (T, B)
    terminal: Tensor  # (T, B), 1 where the episode has ended
    first: Tensor | None = None  # (T, B) bool, where an episode begins; None: nowhere but at the first step


def to_tensors(drawn: replay.Sequences, spec: EnvironmentSpec, device: str) -> Sequences:
    """B sequences of T states as tensors, time first."""
    B, T = drawn.reward.shape  # noqa: N806
    classes = palette_of(spec).classes(drawn.observation.reshape(B * T, *spec.shape))
    columns = (classes.reshape(B, T, *classes.shape[1:]), drawn.action, drawn.reward, drawn.terminal)
    moved = [torch.from_numpy(column).to(device).transpose(0, 1).contiguous() for column in columns]
    action = functional.one_hot(moved[1], spec.actions).float()
    first = torch.from_numpy(drawn.first.T.copy()).to(device) if drawn.first[:, 1:].any() else None
    return Sequences(moved[0], action, moved[2].float(), moved[3].float(), first)


class State(NamedTuple):
    """A latent state of the model: deterministic, and stochastic as one-hot categories."""

    deter: Tensor  # (..., D)
    stoch: Tensor  # (..., S * C)

    @property
    def features(self) -> Tensor:
        """(..., D + S * C), what heads and policies get."""
        return torch.cat(self, -1)

    def detach(self) -> "State":
        """The same, without gradients."""
        return State(self.deter.detach(), self.stoch.detach())


class RecurrentModel(nn.Module):
    """Latent dynamics (Hafner et al. 2019, 2021): a recurrent cell, a prior, and a posterior that sees the picture."""

    def __init__(self, config: WorldModelConfig, embedding: int, actions: int) -> None:
        super().__init__()
        D, U = config.deterministic, config.units  # noqa: N806
        self.shape = (config.latents, config.latent_classes)
        stochastic = config.latents * config.latent_classes
        self.first = nn.Parameter(torch.zeros(D))
        self.inputs = Dense(stochastic + actions, U)
        self.cell = nn.Linear(D + U, 3 * D, bias=False)
        nn.init.xavier_uniform_(self.cell.weight)
        self.cell_norm = nn.LayerNorm(3 * D, eps=NORM_EPSILON)
        self.prior_hidden, self.prior_output = Dense(D, U), output_layer(U, stochastic)
        self.posterior_hidden, self.posterior_output = Dense(D + embedding, U), output_layer(U, stochastic)

    def initial(self, batch: int) -> State:
        """The learned state before an episode."""
        deter = self.first.tanh()
        stoch = mode_one_hot(self.prior(deter.detach())).flatten()
        return State(deter.expand(batch, -1), stoch.expand(batch, -1))

    def prior(self, deter: Tensor) -> Tensor:
        """Logits (..., S, C) of the stochastic state that follows from the deterministic one."""
        return self.prior_output(self.prior_hidden(deter)).unflatten(-1, self.shape)

    def observe(
        self, embedding: Tensor, action: Tensor, uniform: Tensor, first: Tensor | None = None
    ) -> tuple[State, Tensor]:
        """Posterior states of sequences that start from the initial state, and their logits (T, B, S, C).

        Gets embeddings (T, B, E), actions (T, B, A), of which the first are ignored, and random numbers (T, B, S).
        Where ``first`` (T, B) says that an episode begins, the state is the initial one again and the action ignored.
        """
        B = embedding.shape[1]  # noqa: N806
        action = torch.cat([torch.zeros_like(action[:1]), action[1:]])
        if first is not None:
            action = action.masked_fill(first[..., None], 0.0)
        # What does not depend on earlier states, for all steps at once.
        from_stoch, moved = self._from_stoch(), self._from_action(action)  # (T, B, U)
        from_deter, seen = self._from_deter(), self._from_embedding(embedding)  # (T, B, U)
        # The recurrence.
        initial, states, logits = self.initial(B), [], []
        state = initial
        for t, (moved_t, seen_t, uniform_t) in enumerate(zip(moved.unbind(), seen.unbind(), uniform, strict=True)):
            if first is not None:
                state = State(*(torch.where(first[t, :, None], *each) for each in zip(initial, state, strict=True)))
            deter = self._transition(state, moved_t, from_stoch)
            found = self._posterior(deter, seen_t, from_deter)
            state = State(deter, straight_through(found, uniform_t).flatten(-2))
            states.append(state)
            logits.append(found)
        deters, stochs = zip(*states, strict=True)
        return State(torch.stack(deters), torch.stack(stochs)), torch.stack(logits)

    def observe_one(self, state: State, embedding: Tensor, action: Tensor, uniform: Tensor) -> State:
        """The posterior state after one action (B, A) and what was seen then (B, E)."""
        deter = self._transition(state, self._from_action(action), self._from_stoch())
        found = self._posterior(deter, self._from_embedding(embedding), self._from_deter())
        return State(deter, straight_through(found, uniform).flatten(-2))

    def imagine(self, state: State, action: Tensor, uniform: Tensor | None = None) -> State:
        """The state after an action (B, A), sampled from the prior by random numbers (B, S), or the most likely one."""
        deter = self._transition(state, self._from_action(action), self._from_stoch())
        logits = self.prior(deter)
        stoch = mode_one_hot(logits) if uniform is None else straight_through(logits, uniform)
        return State(deter, stoch.flatten(-2))

    # Linear layers on several inputs, one input at a time.

    def _from_stoch(self) -> Tensor:
        return self.inputs.linear.weight[:, : self.shape[0] * self.shape[1]]

    def _from_action(self, action: Tensor) -> Tensor:
        return functional.linear(action, self.inputs.linear.weight[:, self.shape[0] * self.shape[1] :])

    def _from_deter(self) -> Tensor:
        return self.posterior_hidden.linear.weight[:, : len(self.first)]

    def _from_embedding(self, embedding: Tensor) -> Tensor:
        return functional.linear(embedding, self.posterior_hidden.linear.weight[:, len(self.first) :])

    def _transition(self, state: State, moved: Tensor, from_stoch: Tensor) -> Tensor:
        """The next deterministic state: a recurrent cell whose reset gate acts on the mixed candidate."""
        hidden = self.inputs.activate(functional.linear(state.stoch, from_stoch) + moved)
        mixed = self.cell_norm(self.cell(torch.cat([state.deter, hidden], -1)))
        reset, candidate, update = mixed.chunk(3, -1)
        candidate = (reset.sigmoid() * candidate).tanh()
        return torch.lerp(state.deter, candidate, (update - 1).sigmoid())

    def _posterior(self, deter: Tensor, seen: Tensor, from_deter: Tensor) -> Tensor:
        """Logits (B, S, C)."""
        hidden = self.posterior_hidden.activate(functional.linear(deter, from_deter) + seen)
        return self.posterior_output(hidden).unflatten(-1, self.shape)


class WorldModelResult(NamedTuple):
    """What one pass over sequences gives."""

    loss: Tensor
    state: State  # (T, B, ...) posterior
    metrics: dict[str, Tensor]


class WorldModel(nn.Module):
    """Encoder, latent dynamics, and heads for pictures, rewards and continuation."""

    def __init__(self, config: WorldModelConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.config, features = config, config.deterministic + config.latents * config.latent_classes
        encoder, decoder = (CellEncoder, CellDecoder) if config.pictures == "cells" else (PixelEncoder, PixelDecoder)
        self.encoder: CellEncoder | PixelEncoder = encoder(config, spec)
        self.decoder: CellDecoder | PixelDecoder = decoder(features, config, spec)
        self.dynamics = RecurrentModel(config, self.encoder.width, spec.actions)
        self.reward = mlp(features, config.head_layers, config.head_units, 1)
        self.continuation = mlp(features, config.head_layers, config.head_units, 1)
        self.kl_scale = AdaptiveScale(config.kl_target, *KL_SCALES)

    def embed(self, classes: Tensor) -> Tensor:
        """(..., W, H) classes to embeddings (..., E)."""
        return self.encoder(classes.flatten(0, -3)).unflatten(0, classes.shape[:-2])

    def predict_reward(self, features: Tensor) -> Tensor:
        """Expected rewards (...,)."""
        return symexp(self.reward(features)[..., 0])

    def predict_continuation(self, features: Tensor) -> Tensor:
        """Probabilities (...,) that episodes go on."""
        return self.continuation(features)[..., 0].sigmoid()

    def forward(self, batch: Sequences, uniform: Tensor) -> WorldModelResult:
        """The loss of a batch of sequences, with random numbers (T, B, S)."""
        # Posterior states, and the prior's view of them.
        state, posterior = self.dynamics.observe(self.embed(batch.classes), batch.action, uniform, batch.first)
        prior, features = self.dynamics.prior(state.deter), state.features
        # Divergence, of which prior and posterior get their shares of the gradient.
        kl = balanced_kl(posterior, prior, self.config.kl_balance).sum(-1)  # (T, B)
        scale = self.config.kl_scale or self.kl_scale(kl.detach().mean())
        # Predictions of pictures, rewards and continuation.
        flat = features.flatten(0, 1)
        losses = {
            "picture": self.decoder.loss(flat, batch.classes.flatten(0, 1)).mean(),
            "reward": (self.reward(flat)[:, 0] - symlog(batch.reward).flatten()).square().mean(),
            "continuation": functional.binary_cross_entropy_with_logits(
                self.continuation(flat)[:, 0], 1 - batch.terminal.flatten()
            ),
            "kl": kl.mean(),
        }
        loss = losses["picture"] + losses["reward"] + losses["continuation"] + scale * losses["kl"]
        metrics = {f"model_{name}": value.detach() for name, value in losses.items()}
        return WorldModelResult(loss, state.detach(), metrics)

    @torch.no_grad()
    def open_loop(self, batch: Sequences, observed: int, uniform: Tensor) -> Tensor:
        """(T, B) the agent's cell as decoded, where only the first ``observed`` pictures are seen."""
        embedding = self.embed(batch.classes[:observed])
        states, _ = self.dynamics.observe(embedding, batch.action[:observed], uniform[:observed])
        found, state = [states.features], State(states.deter[-1], states.stoch[-1])
        for t in range(observed, len(batch.action)):
            state = self.dynamics.imagine(state, batch.action[t], uniform[t])
            found.append(state.features[None])
        features = torch.cat(found)
        return self.decoder.agent_cell(features.flatten(0, 1)).unflatten(0, features.shape[:2])
