"""`compactd completion bash|zsh|fish`: prints the script with which a shell completes compactd's command
lines.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from click.shell_completion import get_completion_class
from msgspec import Struct

from compactd.cli.framework.command import Argument, Command
from compactd.cli.framework.exit_codes import DONE, USAGE, CommandError
from compactd.cli.framework.page import Page

ABOUT = """\
Prints the script that makes a shell complete commands, options, formats, stored
sessions and models. Without SHELL, it prints the script for the shell in $SHELL. To
load it in every new shell:

  bash  compactd completion bash > ~/.local/share/bash-completion/completions/compactd
  zsh   compactd completion zsh > ~/.zfunc/_compactd
        and in ~/.zshrc, before compinit: fpath+=~/.zfunc
  fish  compactd completion fish > ~/.config/fish/completions/compactd.fish

To load it in the current shell only: eval "$(compactd completion bash)", or in fish:
compactd completion fish | source
"""

SHELLS = ("bash", "zsh", "fish")


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    shell: str | None


def run(options: Options, page: Page) -> int:
    """Print the completion script."""
    shell = options.shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise CommandError(
            f"there is no completion for the shell {shell!r}."
            if shell
            else "$SHELL does not say which shell it is.",
            hint=f"Name one of {', '.join(SHELLS)}.",
            exit_code=USAGE,
        )
    script = script_of(shell)
    if page.is_json:
        page.json({"shell": shell, "script": script})
    else:
        sys.stdout.write(script)
    return DONE


def script_of(shell: str) -> str:
    """Return the completion script for one of `SHELLS`."""
    from compactd.cli.framework.registry import GROUP, VARIABLE

    found = get_completion_class(shell)
    assert found is not None
    asked = found(GROUP, {}, "compactd", VARIABLE)
    # `source()` would start bash to find out its version.
    return asked.source_template % asked.source_vars()


COMMAND = Command(
    "completion",
    Options,
    run,
    about=ABOUT,
    params=(Argument("shell", ", ".join(SHELLS), required=False, choices=SHELLS),),
    examples=(('eval "$(compactd completion bash)"', "load completion in this shell"),),
)
