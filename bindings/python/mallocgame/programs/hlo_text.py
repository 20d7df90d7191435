"""The process in which jaxlib's parser reads HLO text: what it can't take may end the process.

The text comes on standard input, an HloModuleProto leaves on standard output. Exit status 1: the
text is none, and standard error says why.
"""

import sys


def main() -> int:
    """Parses one module."""
    from jaxlib import _hlo  # type: ignore[attr-defined]

    text = sys.stdin.buffer.read().decode()
    try:
        module = _hlo.hlo_module_from_text(text)
    except Exception as error:  # Which class it is changes with jaxlib.
        print(error, file=sys.stderr)
        return 1
    sys.stdout.buffer.write(module.as_serialized_hlo_module_proto())
    return 0


if __name__ == "__main__":
    sys.exit(main())
