"""Pages of the site that are written from the code: those of messages, and the command line."""

from collections.abc import Iterator
from typing import Any

from empirisk.cli import main
from empirisk.messages import CODES, page


def messages() -> dict[str, str]:
    """The page of each code by the name of its file, and the list of them.

    >>> "[ER001](ER001.md)" in messages()["index.md"]
    True
    """
    rows = "\n".join(f"| [{code}]({code}.md) | {title} |" for code, title in CODES.items())
    hidden = "\n".join(CODES)
    index = (
        "# Messages\n\nWarnings and errors that tell of a decision end with a code, such as `[ER001]`. In notebooks "
        "and in the report it is a link to what its page says; `empirisk message ER001` prints the page in a shell.\n\n"
        f"| code | what it is about |\n|---|---|\n{rows}\n\n```{{toctree}}\n:hidden:\n\n{hidden}\n```\n"
    )
    return {f"{code}.md": page(code) for code in CODES} | {"index.md": index}


def command_line() -> str:
    """Every command with its arguments and options, as its help states them.

    >>> "## empirisk learn" in command_line()
    True
    """
    parts = ["# The command line", "`empirisk --help` and `empirisk COMMAND --help` say the same in a shell."]
    for name in main.COMMANDS:
        command = main.load(name)
        shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
        operands = " ".join(_operand(one) for one in shown if one.param_type_name == "argument")
        about = " ".join((command.help or "").split())
        parts += [f"## empirisk {name}", f"```\nempirisk {name} [OPTIONS] {operands}".rstrip() + "\n```", about]
        if shown:
            parts.append("\n".join(_entries(shown)))
    return "\n\n".join(parts) + "\n"


def _operand(parameter: Any) -> str:
    name = parameter.name.upper() + "..." * (parameter.nargs != 1)
    return name if parameter.required else f"[{name}]"


def _entries(parameters: list[Any]) -> Iterator[str]:
    """A definition list."""
    for parameter in parameters:
        option = parameter.param_type_name == "option"
        names = ", ".join([*parameter.opts, *parameter.secondary_opts]) if option else _operand(parameter)
        default = parameter.default
        given = f" Default: `{default}`." if option and default not in (None, False, True, (), []) else ""
        yield f"`{names}`\n: {' '.join((parameter.help or '').split())}{given}\n"
