"""Decide whether the provider itself names the limit in an error, so that all sessions may use that limit.

An error can quote a file, a URL or a tool's output, and that text can look like a rejection. A wrong
classification costs one session one compaction, but a wrong window makes every later session too small. So
this rule is stricter than the classification. Every message of the error must begin with a provider's
sentence; only prefixes that SDKs and gateways are known to add may precede it. Up to its numbers, the
sentence may contain only words that providers use. Outside of structured data there may be one line only.
"""

from __future__ import annotations

import re

from compactd.core.overflow.unwrap import unwrap
from compactd.core.overflow.vocabulary import word_set

REPORTING = (None, 200, 400, 413, 422)
"""Statuses with which providers report an overflow and name their window (seen 2026-11). 401, 403 and 404
are about a key or a name. The text of a 5xx may be about anything that passed through the server."""

CLASSES = (
    r"(?:litellm\.|openai\.|anthropic\.)?(?:BadRequest|ContextWindowExceeded|InvalidRequest|APIStatus|API"
    r"|AI_APICall|CAPI|Value|Validation|Cohere)(?:Error|Exception)"
)
"""Matches the exception classes of SDKs that precede a provider's sentence."""
GATEWAYS = (
    r"(?:OpenAI|AzureOpenAI|Azure|Azure_ai|Anthropic|Openrouter|Fireworks_ai|Together_ai|TogetherAI|Vertex_ai"
    r"|VertexAI|Gemini|Bedrock|Groq|Mistral|Deepseek|Xai|Ollama|Hosted_vllm|Vllm|Cohere)Exception"
)
"""Matches the names that LiteLLM gives to errors that it passes on, one per provider."""
PREFIX = re.compile(
    rf"[\s\[\].:–-]*(?i:{CLASSES}|{GATEWAYS}|api error occurred(?=: status [45])|<?[45]\d\d>?(?!\d)"
    r"|(?:openai |api )*error(?: code)?(?=[\s:\]])|api(?= [45]\d\d:)|b(?=\W*$)|request failed(?=: [45])"
    r"|bad request(?=[:.])|input validation error(?=: `inputs`)|internalerror\.algo\.invalidparameter"
    r"|provider returned error|the model returned the following errors|status(?= [45]\d\d\b)"
    r"|content-type application/json body|invalid request(?=: your request exceeded )"
    r"|invalid request\. please check the parameters and try again\. details"
    r"|troubleshooting url: https://docs\.langchain\.com/\S{0,90}"
    r"|an error occurred \(validationexception\) when calling the \w{4,40} operation"
    r"|keyerror: 'choices', got unexpected response from openrouter)[\s\]:.–-]*"
)
"""Matches one prefix before a provider's sentence. Each prefix occurs in a recorded error (2026-11:
LiteLLM, OpenRouter, Bedrock, DashScope, TGI, Together, LangChain, the SDKs of OpenAI, Anthropic, Mistral
and Vercel)."""
MAX_PREFIXES = 8
"""The maximum number of prefixes that are removed from one message."""

WORDS = word_set(
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
"""The words in the sentences with which providers name their windows. Letters only, lower case."""
SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[;,](?=\s+(?i:please|try|decrease|reduce)\b)")
"""Matches the end of a sentence, or the comma before a provider's advice."""
NUMBER = re.compile(r"\d+(?:[,_']\d{3})*")
FOREIGN_SIGNS = re.compile(
    r"^[\d>]|[\"“”«»{}|\\@#*~]|</?\w|://|\w[./]\w|(?<![\w'])'(?!\w+'\W)|```|[a-z,] [A-Z][a-z]"
    r"|:(?!\s*\d| total number)"
)
"""Matches what a provider's sentence about its window never contains: quotation marks, addresses, file
names, markup, the beginning of another sentence, a colon without a number after it, a number or `>` before
its first word."""
WORDED_LINE = r"(?m)^.*[^\W\d_]{2}.*$"
"""Matches a line that contains a word."""
MAX_SENTENCE = 400
"""The maximum number of characters from the beginning of a message to the end of the sentence that names
the numbers."""
CONTINUING = re.compile(r"\s*(?:please|try|decrease|reduce|[^a-z\s]|$)")
"""Matches how a text may continue after the provider's sentence. Any other lower-case letter means that the
sentence had not ended: the full stop was part of a name."""


def is_stated_by_provider(text: str, status: int | None, limit: int, requested: int | None) -> bool:
    """Return whether the provider itself names `limit` in `text`. O(characters), for at most 11,000
    characters of the text."""
    if status not in REPORTING:
        return False
    body = unwrap(text)
    if len(re.findall(WORDED_LINE, body.prose)) > 1:
        return False
    texts = [_without_prefixes(" ".join(said.split())) for said in (*body.messages, body.prose)]
    stated = [said for said in texts if said]
    fields = {value for _, value in body.figures}
    return bool(stated) and all(_begins_with(said, limit, requested, fields) for said in stated)


def _without_prefixes(said: str) -> str:
    """Return a message without the known prefixes and without punctuation at its ends."""
    for _ in range(MAX_PREFIXES):
        found = PREFIX.match(said)
        if found is None:
            break
        said = said[found.end() :]
    return said.strip(" \t[](){},.:;-\"'")


def _begins_with(said: str, limit: int, requested: int | None, fields: set[int]) -> bool:
    """Return whether `said` begins with a provider's sentences, up to the one that names `limit` and
    `requested`. `fields` are the numbers in the body's fields. If `limit` is one of them, the sentences need
    not name it."""
    ends: dict[int, int] = {}
    for found in NUMBER.finditer(said[:MAX_SENTENCE]):
        ends.setdefault(int(re.sub(r"\D", "", found.group())), found.end())
    if limit not in ends and limit not in fields:
        return False
    last = max(ends.get(limit, 0), 0 if requested is None else ends.get(requested, 0))
    end = SENTENCE_END.search(said, last)
    sentence = said if end is None else said[: end.start()]
    if len(sentence) > MAX_SENTENCE or FOREIGN_SIGNS.search(sentence) is not None:
        return False
    words = re.findall(r"[^\W\d]+", sentence.lower().replace("_", ""))
    return all(word in WORDS for word in words) and CONTINUING.match(said, len(sentence) + 1) is not None
