"""Ask a language model behind an OpenAI-compatible API to play a role of the reading test."""

from __future__ import annotations

import os
import re
from typing import Final, TypeVar

import httpx
import msgspec

TIMEOUT_S: Final = 600.0
ATTEMPTS: Final = 3
"""How often a question is asked if the answer is no valid JSON."""
_FENCE: Final = re.compile(r"```(?:json)?\n(.*?)```", re.DOTALL)

Answer = TypeVar("Answer")


class Model:
    """A language model. The key comes from the environment variable `OPENAI_API_KEY`."""

    def __init__(self, base_url: str, model: str) -> None:
        key = os.environ.get("OPENAI_API_KEY", "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=TIMEOUT_S)
        self._model = model

    def ask(self, role: str, text: str, form: type[Answer]) -> Answer:
        """Ask for an answer of this form. Raise `msgspec.DecodeError` if the model never gives one, and
        `httpx.HTTPError` if it cannot be asked."""
        for attempt in range(1, ATTEMPTS + 1):
            said = self.text(role, text)
            fenced = _FENCE.search(said)
            try:
                return msgspec.json.decode(fenced[1] if fenced else said, type=form)
            except msgspec.DecodeError:
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError  # the last attempt returned or raised

    def text(self, role: str, text: str, max_tokens: int | None = None) -> str:
        """Return the model's answer. Raise `httpx.HTTPError` if it cannot be asked."""
        messages = [{"role": "system", "content": role}, {"role": "user", "content": text}]
        request: dict[str, object] = {"model": self._model, "messages": messages, "temperature": 0}
        if max_tokens is not None:
            request["max_tokens"] = max_tokens
        reply = self._http.post("/chat/completions", json=request)
        reply.raise_for_status()
        said: str = reply.json()["choices"][0]["message"]["content"]
        return said

    def close(self) -> None:
        """Close the connection."""
        self._http.close()
