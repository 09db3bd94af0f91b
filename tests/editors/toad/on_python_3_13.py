"""Makes toad 0.6.20, which needs Python 3.14, run on 3.13. Install it next to toad as `sitecustomize.py`.

toad relies on lazily evaluated annotations and on `InterpreterPoolExecutor`, which are new in 3.14.
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
