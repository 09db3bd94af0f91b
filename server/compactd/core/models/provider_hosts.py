"""Providers of models: their names, the hosts of their APIs, and which of them serve models of their own."""

from __future__ import annotations

import re

FIRST_PARTIES = (
    "anthropic",
    "openai",
    "google",
    "xai",
    "deepseek",
    "moonshotai",
    "zai",
    "minimax",
    "cohere",
    "perplexity",
    "meta",
    "xiaomi",
    "stepfun",
    "upstage",
    "inception",
    "ai21",
    "thinkingmachines",
    "sarvam",
    "poolside",
    "longcat",
    "morph",
    "sakana",
    "mistral",
    "alibaba",
    "arcee",
)
"""Providers that serve models which they make themselves. Their rows apply to an id without a provider; the
first provider in this order counts. The ones at the end also serve models of other makers."""

# fmt: off
LOCAL = frozenset({
    "atomic-chat", "docker-model-runner", "exo", "gpt4all", "jan", "koboldcpp", "llama-cpp", "llamafile",
    "lmstudio", "local", "localai", "mlx", "ollama", "ramalama", "sglang", "tabbyapi",
    "text-generation-webui", "tgi", "vllm", "xinference",
})
# fmt: on
"""Servers of open weights that may load less than a model's native window."""

SYNONYMS = {
    "bedrock": "amazon-bedrock",
    "bedrock-converse": "amazon-bedrock",
    "aws": "amazon-bedrock",
    "aws-bedrock": "amazon-bedrock",
    "vertex": "google-vertex",
    "vertex-ai": "google-vertex",
    "vertexai": "google-vertex",
    "gemini": "google",
    "google-ai-studio": "google",
    "google-generative-ai": "google",
    "copilot": "github-copilot",
    "moonshot": "moonshotai",
    "kimi": "moonshotai",
    "z-ai": "zai",
    "zhipu": "zhipuai",
    "together": "togetherai",
    "together-ai": "togetherai",
    "fireworks": "fireworks-ai",
    "chatgpt": "openai-codex",
    "codex": "openai-codex",
    "x-ai": "xai",
    "azure-openai": "azure",
    "azure-ai": "azure",
    "mistralai": "mistral",
    "dashscope": "alibaba",
    "qwen": "alibaba",
    "vercel-ai-gateway": "vercel",
    "cloudflare": "cloudflare-workers-ai",
    "lm-studio": "lmstudio",
    "llamacpp": "llama-cpp",
    "hf": "huggingface",
    "deepseek-ai": "deepseek",
    "zai-org": "zai",
    "minimaxai": "minimax",
    "cohere-chat": "cohere",
    "amazon": "amazon-bedrock",
    "aws-bedrock-converse": "amazon-bedrock",
    "bedrock-mantle": "amazon-bedrock",
    "gcp": "google-vertex",
    "google-vertexai": "google-vertex",
    "google-vertex-ai": "google-vertex",
    "vertex-ai-beta": "google-vertex",
    "anthropic-vertex": "google-vertex-anthropic",
    "vertex-anthropic": "google-vertex-anthropic",
    "google-genai": "google",
    "googleai": "google",
    "google-gemini": "google",
    "gemini-cli": "google",
    "google-ai": "google",
    "gh-copilot": "github-copilot",
    "copilot-chat": "github-copilot",
    "github": "github-models",
    "codex-cli": "openai-codex",
    "openai-chatgpt": "openai-codex",
    "claude-code": "anthropic",
    "grok": "xai",
    "zhipu-ai": "zhipuai",
    "bigmodel": "zhipuai",
    "glm": "zai",
    "moonshot-ai": "moonshotai",
    "kimi-code": "kimi-for-coding",
    "azure-ai-foundry": "azure",
    "azure-foundry": "azure",
    "microsoft-foundry": "azure",
    "azure-ai-inference": "azure",
    "novita": "novita-ai",
    "nvidia-nim": "nvidia",
    "nim": "nvidia",
    "meta-llama-api": "llama",
    "togethercomputer": "togetherai",
    "together-computer": "togetherai",
    "fireworksai": "fireworks-ai",
    "deep-infra": "deepinfra",
    "siliconcloud": "siliconflow",
    "snowflake": "snowflake-cortex",
    "sap": "sap-ai-core",
    "gmi": "gmicloud",
    "zen": "opencode",
    "wafer-ai": "wafer.ai",
    "opencode-zen": "opencode",
    "vercel-ai": "vercel",
    "ai-gateway": "vercel",
    "workers-ai": "cloudflare-workers-ai",
    "open-router": "openrouter",
    "hosted-vllm": "vllm",
    "ollama-chat": "ollama",
    "llama-server": "llama-cpp",
    "mlx-lm": "mlx",
    "mlx-community": "mlx",
    "docker": "docker-model-runner",
    "oobabooga": "text-generation-webui",
}
"""Other names of providers, as LiteLLM, OpenRouter, Hugging Face and agents write them, in the spelling of
`name_key`."""

SIBLINGS = {
    "google-vertex": ("google-vertex-anthropic",),
    "google-vertex-anthropic": ("google-vertex",),
    "azure": ("azure-cognitive-services",),
}
"""For a provider, the other providers whose rows are searched too, because they are the same service under
another name."""

PROXIES = frozenset(
    {
        "litellm-proxy",
        "litellm",
        "proxy",
        "custom",
        "openai-compatible",
        "openai-compat",
        "openai-like",
        "custom-openai",
    }
)
"""Names that say how a model is reached, not who serves it."""

HOSTS = (
    ("api.openai.com", "openai"),
    ("chatgpt.com", "openai-codex"),
    ("api.anthropic.com", "anthropic"),
    ("openrouter.ai", "openrouter"),
    ("generativelanguage.googleapis.com", "google"),
    ("aiplatform.googleapis.com", "google-vertex"),
    ("openai.azure.com", "azure"),
    ("services.ai.azure.com", "azure"),
    ("amazonaws.com", "amazon-bedrock"),
    ("githubcopilot.com", "github-copilot"),
    ("api.groq.com", "groq"),
    ("api.mistral.ai", "mistral"),
    ("api.x.ai", "xai"),
    ("api.deepseek.com", "deepseek"),
    ("api.moonshot.ai", "moonshotai"),
    ("api.z.ai", "zai"),
    ("api.together.xyz", "togetherai"),
    ("api.fireworks.ai", "fireworks-ai"),
    ("api.cerebras.ai", "cerebras"),
    ("dashscope-intl.aliyuncs.com", "alibaba"),
    ("dashscope.aliyuncs.com", "alibaba-cn"),
    ("api.perplexity.ai", "perplexity"),
    ("api.minimax.io", "minimax"),
    ("integrate.api.nvidia.com", "nvidia"),
    ("models.github.ai", "github-models"),
    ("models.inference.ai.azure.com", "github-models"),
    ("router.huggingface.co", "huggingface"),
    ("api.deepinfra.com", "deepinfra"),
    ("api.novita.ai", "novita-ai"),
    ("api.siliconflow.com", "siliconflow"),
    ("api.siliconflow.cn", "siliconflow-cn"),
    ("open.bigmodel.cn", "zhipuai"),
    ("api.moonshot.cn", "moonshotai-cn"),
    ("api.minimaxi.com", "minimax-cn"),
    ("api.kimi.com", "kimi-for-coding"),
    ("ai-gateway.vercel.sh", "vercel"),
    ("opencode.ai", "opencode"),
    ("ollama.com", "ollama-cloud"),
    ("api.cohere.com", "cohere"),
    ("api.inceptionlabs.ai", "inception"),
    ("databricks.com", "databricks"),
    ("azuredatabricks.net", "databricks"),
    ("snowflakecomputing.com", "snowflake-cortex"),
    ("baseten.co", "baseten"),
    ("llm.chutes.ai", "chutes"),
    ("api.synthetic.new", "synthetic"),
    ("api.venice.ai", "venice"),
    ("api.llama.com", "llama"),
)
"""(end of a host's name, provider): the documented API hosts of the providers."""

_LOOPBACK = r"^(?:localhost|.+\.localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\]|host\.docker\.internal)$"
_HOST = r"^(?:[A-Za-z][A-Za-z0-9+.-]*://)?(?:[^/@]*@)?(\[[^\]]*\]|[^/:?#]*)"


def host_of(base_url: str) -> str:
    """Return the host name in a URL, in lower case; empty if there is none. Only the first 512 characters are
    examined."""
    match = re.match(_HOST, base_url[:512].strip())
    return match.group(1).lower() if match else ""


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine."""
    return re.match(_LOOPBACK, host) is not None


def provider_at_host(host: str) -> str | None:
    """Return the provider at `host`; `local` for this machine, None if it is unknown."""
    if is_loopback(host):
        return "local"
    for end, provider in HOSTS:
        if host == end or host.endswith("." + end):
            return provider
    return None
