"""Whether a provider itself states the limit that an error names, so that all sessions may learn it.

An error can quote a file, a URL or a tool's output, and that text can read like a rejection. A wrong
classification costs one session one compaction, but a wrong window makes every later session too small. So
this rule is stricter than the classification. Every text of the error must begin with the provider's
sentence, after prefixes that SDKs and gateways are known to add. Up to its figures, the sentence may use only
words that providers use.
"""

from __future__ import annotations

import re

from compactd.core.overflow.bare import bare
from compactd.core.overflow.lists import listed
from compactd.core.overflow.unwrap import unwrap

REPORTING = (None, 200, 400, 413, 422)
"""Statuses with which providers report an overflow and name their window (research of 2026-11). 401, 403 and
404 are about a key or a name; the text of a 5xx is about anything that passed through the server."""

CLASSES = (
    r"(?:litellm\.|openai\.|anthropic\.)?(?:BadRequest|ContextWindowExceeded|InvalidRequest|APIStatus|API"
    r"|AI_APICall|CAPI|Value|Validation|Cohere)(?:Error|Exception)"
)
GATEWAYS = (
    r"(?:OpenAI|AzureOpenAI|Azure|Azure_ai|Anthropic|Openrouter|Fireworks_ai|Together_ai|TogetherAI|Vertex_ai"
    r"|VertexAI|Gemini|Bedrock|Groq|Mistral|Deepseek|Xai|Ollama|Hosted_vllm|Vllm|Cohere)Exception"
)
"""How LiteLLM names the provider whose error it passes on."""
PREFIX = re.compile(
    rf"[\s\[.:–-]*(?i:{CLASSES}|{GATEWAYS}|api error occurred(?=: status [45])|<?[45]\d\d>?(?!\d)"
    r"|(?:openai |api )*error(?: code)?(?=[\s:])|api(?= [45]\d\d:)|b(?=\W*$)|request failed(?=: [45])"
    r"|bad request(?=[:.])|input validation error(?=: `inputs`)|internalerror\.algo\.invalidparameter"
    r"|provider returned error|the model returned the following errors|status(?= [45]\d\d\b)"
    r"|content-type application/json body|invalid request(?=: your request exceeded )"
    r"|invalid request\. please check the parameters and try again\. details"
    r"|troubleshooting url: https://docs\.langchain\.com/\S{0,90}"
    r"|an error occurred \(validationexception\) when calling the \w{4,40} operation"
    r"|keyerror: 'choices', got unexpected response from openrouter)[\s:.–-]*"
)
"""One prefix. Each is in a recorded error (2026-11: LiteLLM, OpenRouter, Bedrock, DashScope, TGI, Together,
LangChain, the SDKs of OpenAI, Anthropic, Mistral and Vercel)."""
MAX_PREFIXES = 8

WORDS = listed(
    "a about all allowed allows an and any are as at available be because but by cannot chat combined"
    " completion configured contain contained contains content context conversation count current decoder"
    " does draft enable endpoint enough exceed exceeded exceeding exceeds first for from generated"
    " generation given greater has have however images in increasing input inputs is it its keep larger"
    " least length less limit limited llm loaded long longer large many max maximum maxnewtokens"
    " maxprompttokens maxinputtokens maxtokens message messages min model models more most must nctx need"
    " needs new no not number of on only or output over overflow overflows per plus please prediction"
    " prompt prompts prompttokens provided range reached received reduce request requested requests"
    " require required requires resulted s sequence sent shift shorten should size so sum support"
    " supported supports text than that the their this to token tokens too total try trying tried unable"
    " submit up used user was when which while window with within would you your"
)
"""Words of the sentences with which providers name their windows. Letters only, lower case."""
SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[;,](?=\s+(?i:please|try|decrease|reduce)\b)")
NUMBER = re.compile(r"\d+(?:[,_']\d{3})*")
FOREIGN = re.compile(
    r"[\"“”«»{}|\\@#*~]|</?\w|://|\w[./]\w|(?<![\w'])'(?!\w+'\W)|```|[a-z,] [A-Z][a-z]"
    r"|:(?!\s*\d| total number)"
)
"""What no provider's own sentence has: quotation marks, addresses, file names, markup, the beginning of
another sentence, a colon that no number follows."""
MAX_SENTENCE = 400
"""Characters of the sentences that name the figures."""
CONTINUING = re.compile(r"\s*(?:please|try|decrease|reduce|[^a-z\s]|$)")
"""How a provider goes on. Any other small letter: what came before was a name within a longer sentence."""


def is_own(text: str, status: int | None, limit: int, requested: int | None) -> bool:
    """Whether the provider itself states `limit` in `text`.

    Cost: O(characters), at most 11 000 of the text.
    """
    if status not in REPORTING:
        return False
    body = unwrap(text)
    texts = [_without_prefixes(" ".join(said.split())) for said in (*body.messages, bare(body.prose))]
    stated = [said for said in texts if said]
    fields = {value for _, value in body.figures}
    return bool(stated) and all(_begins_with(said, limit, requested, fields) for said in stated)


def _without_prefixes(said: str) -> str:
    for _ in range(MAX_PREFIXES):
        found = PREFIX.match(said)
        if found is None:
            break
        said = said[found.end() :]
    return said.strip(" \t[](){},.:;-\"'")


def _begins_with(said: str, limit: int, requested: int | None, fields: set[int]) -> bool:
    """Whether `said` begins with sentences in providers' words that name the figures.

    `fields`: figures that the body names next to its message.
    """
    ends: dict[int, int] = {}
    for found in NUMBER.finditer(said[:MAX_SENTENCE]):
        ends.setdefault(int(re.sub(r"\D", "", found.group())), found.end())
    if limit not in ends and limit not in fields:
        return False
    last = max(ends.get(limit, 0), 0 if requested is None else ends.get(requested, 0))
    end = SENTENCE_END.search(said, last)
    sentence = said if end is None else said[: end.start()]
    if len(sentence) > MAX_SENTENCE or FOREIGN.search(sentence) is not None:
        return False
    words = re.findall(r"[^\W\d]+", sentence.lower().replace("_", ""))
    return all(word in WORDS for word in words) and CONTINUING.match(said, len(sentence) + 1) is not None
