"""Lets toad 0.6.20, which is written for Python 3.14, run on 3.13: put beside it as `sitecustomize.py`.

It needs annotations that are not looked at before they are asked for, and an executor that 3.14 has.
"""

from __future__ import annotations
import __future__

import concurrent.futures
import importlib.machinery

_FLAGS = __future__.annotations.compiler_flag
_source_to_code = importlib.machinery.SourceFileLoader.source_to_code


def _compiled(self, data, path, **more):
    if "/toad/" not in str(path):
        return _source_to_code(self, data, path, **more)
    data = bytes(data).replace(
        b"eval(parameter.annotation)", b"eval(parameter.annotation, callable.__func__.__globals__)"
    )
    return compile(data, path, "exec", flags=_FLAGS, dont_inherit=True)


importlib.machinery.SourceFileLoader.source_to_code = _compiled
concurrent.futures.InterpreterPoolExecutor = concurrent.futures.ThreadPoolExecutor
