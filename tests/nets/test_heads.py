import torch

from skipper.nets.heads import PairwiseHead, discount_support, distance_support, histograms_of_pairs, unit_support


def head(**fields) -> PairwiseHead:
    options = {"hidden": 12, "actions": 3, "support": unit_support(5)} | fields
    return PairwiseHead(4, **options)


def test_the_split_first_layer_equals_the_concatenated_pair():
    module = head()
    source, target = torch.randn(6, 4), torch.randn(6, 4)
    expected = module.layers(torch.cat([source, target], -1)).reshape(6, 3, 5)
    torch.testing.assert_close(module(source, target), expected)


def test_all_pairs_of_n_states_need_n_projections():
    module = head()
    states = torch.randn(7, 4)
    pairs = module.join(module.source(states)[:, None], module.target(states)[None])
    assert pairs.shape == (7, 7, 3, 5)
    for i in range(7):
        for j in range(7):
            torch.testing.assert_close(pairs[i, j], module(states[i : i + 1], states[j : j + 1])[0])


def test_supports():
    assert unit_support(5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert distance_support(4).tolist() == [1.0, 2.0, 3.0, 4.0]
    torch.testing.assert_close(discount_support(3, 0.5), torch.tensor([0.5, 0.25, 0.125]))
    assert "support" in head().state_dict()


def test_a_target_that_is_never_reached_is_discounted_to_nothing():
    torch.testing.assert_close(discount_support(3, 0.5, never=True), torch.tensor([0.5, 0.25, 0.0]))
    # Supports are shared: this one must not change the others.
    torch.testing.assert_close(discount_support(3, 0.5), torch.tensor([0.5, 0.25, 0.125]))
    assert distance_support(3).tolist() == [1.0, 2.0, 3.0]


def test_expectations_and_the_discount_in_place_of_the_distance():
    module = head(support=distance_support(4))
    logits = torch.tensor([0.5, 1e-9, 1e-9, 0.5]).log()
    torch.testing.assert_close(module.expectation(logits), torch.tensor(2.5))
    # E[0.5 ** D] = (0.5 + 0.0625) / 2, which is not 0.5 ** E[D] = 0.177
    torch.testing.assert_close(module.expectation(logits, discount_support(4, 0.5)), torch.tensor(0.28125))


class ChangedHead(PairwiseHead):
    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return super().forward(target, source).flip(-1)


def test_histograms_of_pairs_are_those_of_the_heads_own_logits():
    module, sigma = head(), torch.randn(7, 4)
    source, target = torch.randint(7, (2, 20))
    found = []
    for kind in (PairwiseHead, ChangedHead):
        module.__class__ = kind
        found.append(histograms_of_pairs(module, sigma, source, target))
        assert found[-1].shape == (20, 3, 5)
        assert not found[-1].requires_grad
        torch.testing.assert_close(found[-1], module(sigma[source], sigma[target]).softmax(-1).detach())
    assert not torch.allclose(*found)


def test_a_contrast_is_of_the_difference_only():
    module = head(contrast=True)
    source, target, shared = torch.randn(6, 4), torch.randn(6, 4), torch.randn(6, 4)
    torch.testing.assert_close(module(source + shared, target + shared), module(source, target))
    torch.testing.assert_close(module(source, source), module(target, target))
    plain = head()
    assert not torch.allclose(plain(source + shared, target + shared), plain(source, target))
