"""Parsing names of open-weight models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.core.models.open_weights import Weights, weights_of, without_version


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("qwen2.5-coder:32b-instruct-q4_K_M", Weights("qwen-2-5-coder", "32b", True)),
        ("Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf", Weights("qwen-3-coder", "30b", True)),
        ("qwen3-coder:30b", Weights("qwen-3-coder", "30b", False)),
        ("hf.co/unsloth/gpt-oss-20b-GGUF:Q4_K_M", Weights("gpt-oss", "20b", True)),
        ("unsloth/DeepSeek-V3.2-GGUF:UD-Q2_K_XL", Weights("deepseek-v3-2", None, True)),
        ("mlx-community/Qwen3.6-27B-4bit", Weights("qwen-3-6", "27b", True)),
        ("mixtral:8x7b-instruct-v0.1-q4_0", Weights("mixtral-v0-1", "8x7b", True)),
        ("Meta-Llama-3.3-70B-Instruct-Q5_K_M.gguf", Weights("llama-3-3", "70b", True)),
        ("bartowski/google_gemma-3-27b-it-GGUF", Weights("gemma-3", "27b", True)),
        ("Mistral-7B-Instruct-v0.3.Q4_K_M.gguf", Weights("mistral-v0-3", "7b", True)),
        ("Qwen2.5-VL-7B-Instruct-AWQ", Weights("qwen-2-5-vl", "7b", False)),
        ("qwen2.5vl:7b", Weights("qwen-2-5-vl", "7b", False)),
        ("gemma3n:e4b", Weights("gemma-3n", "e4b", False)),
        ("Llama-4-Scout-17B-16E-Instruct", Weights("llama-4-scout", "17b", False)),
        ("qwen3:30b-a3b-thinking-2507-q4_K_M", Weights("qwen-3-thinking-2507", "30b", True)),
        ("Qwen3-1.7B", Weights("qwen-3", "1.7b", False)),
        ("llama3.1:8b-instruct-heretic-q8_0", Weights("llama-3-1-heretic", "8b", True)),
        ("gpt-4o", Weights("gpt-4o", None, False)),
        ("", Weights("", None, False)),
        ("Q4_K_M.gguf", Weights("", None, True)),
    ],
)
def test_a_name_of_open_weights_is_a_family_a_size_and_how_it_is_packed(name: str, weights: Weights) -> None:
    assert weights_of(name) == weights


def test_a_release_at_the_end_of_a_family_can_be_taken_off() -> None:
    assert [without_version(stem) for stem in ("mistral-v0-3", "qwen-3-2507", "phi-4", "deepseek-v3-2")] == [
        "mistral",
        "qwen-3",
        "phi-4",
        "deepseek",
    ]


@given(
    st.sampled_from(("qwen-3-coder", "llama-3-1", "gpt-oss", "gemma-3", "mistral-v0-3", "phi-4")),
    st.sampled_from(("7b", "1.5b", "8x7b", "671b")),
    st.sampled_from(("Q4_K_M", "q8_0", "UD-IQ2_XXS", "IQ4_NL", "Q6_K", "q5_1", "4bit", "MLX-8bit")),
)
def test_no_quantisation_changes_family_or_size(stem: str, size: str, packing: str) -> None:
    plain = f"{stem}-{size}"

    assert weights_of(f"org/{plain}-Instruct-{packing}.gguf") == Weights(stem, size, True)
    assert weights_of(f"{stem}:{size}-instruct-{packing}") == Weights(stem, size, True)
