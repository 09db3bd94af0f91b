"""The message of an uncaught exception, as each language's runtime prints it."""

from __future__ import annotations

import pytest

from compactd.core.overflow.classify import FailureReport, classify

SAID = "the prompt of 9001 tokens exceeds the context window of 8192"

PRINTS = {
    "python": 'Traceback (most recent call last):\n  File "/a.py", line 3, in f\n    g()\nValueError: {}',
    "python without its beginning": '  File "/a.py", line 3, in f\n    raise ValueError(\nValueError: {}',
    "python, one after another": (
        'Traceback (most recent call last):\n  File "/a.py", line 1, in f\n    x()\n'
        "httpx.HTTPStatusError: Client error 400\n\nDuring handling of the above exception, another exception"
        ' occurred:\n\nTraceback (most recent call last):\n  File "/a.py", line 3, in g\n    y()\n'
        "RuntimeError: {}"
    ),
    "python, a group": (
        '  + Exception Group Traceback (most recent call last):\n  |   File "/a.py", line 1, in f\n'
        "  | ExceptionGroup: unhandled errors (1 sub-exception)\n  +-+---------------- 1 ----------------\n"
        "    | openai.BadRequestError: {}\n    +------------------------------------"
    ),
    "a notebook": (
        "BadRequestError                           Traceback (most recent call last)\nCell In[3], line 1\n"
        "----> 1 foo()\n\nBadRequestError: {}"
    ),
    "a box": "openai.BadRequestError: {}\n╭──── Traceback (most recent call last) ────╮\n│ /a.py:8 in f │",
    "node": "Error: {}\n    at foo (/app/x.js:3:4)\n    at async bar (/app/y.js:1:2)",
    "java": (
        "java.lang.RuntimeException: request failed\n\tat a.b.C(D.java:1)\nCaused by: x.LlmException: {}\n"
        "\t... 3 more"
    ),
    ".net": "Unhandled exception. System.Exception: {}\n   at Foo.Bar(String x) in C:\\x.cs:line 12",
    "go": "panic: {}\n\ngoroutine 1 [running]:\nmain.main()\n\t/app/main.go:12 +0x1d\nexit status 2",
    "rust": "Error: {}\n\nStack backtrace:\n   0: foo::bar\n   1: core::ops::function::FnOnce::call_once",
    "c++": (
        "terminate called after throwing an instance of 'std::runtime_error'\n  what():  {}\n"
        "Aborted (core dumped)"
    ),
    "ruby": "foo.rb:12:in `bar': {} (RuntimeError)\n\tfrom foo.rb:3:in `<main>'",
    "elixir": "** (RuntimeError) {}\n    (app 0.1.0) lib/foo.ex:12: Foo.bar/1",
    "dart": "Exception: {}\n#0      foo (package:app/x.dart:12:5)\n#1      main (file:///a.dart:3:3)",
}

SERVICES = {
    "docker": "svc-1  | ",
    "pm2": "0|app  | ",
    "journald": "Jan 01 12:00:00 host python[12]: ",
}


@pytest.mark.parametrize("runtime", PRINTS)
def test_what_was_thrown_is_read_whatever_runtime_printed_it(runtime: str) -> None:
    found = classify(FailureReport(text=PRINTS[runtime].replace("{}", SAID)))

    assert (found.kind, found.limit, found.requested) == ("overflow", 8192, 9001)


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("runtime", ["python", "node", "java"])
def test_the_name_of_a_service_before_each_line_changes_nothing(service: str, runtime: str) -> None:
    lines = PRINTS[runtime].replace("{}", SAID).split("\n")

    found = classify(FailureReport(text="\n".join(SERVICES[service] + line for line in lines)))

    assert (found.kind, found.limit, found.requested) == ("overflow", 8192, 9001)
