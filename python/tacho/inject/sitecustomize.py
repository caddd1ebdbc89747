"""Python imports this at its start when `tacho ... --torch-trace` put the folder into PYTHONPATH: it asks for PyTorch's
operators and then hands over to the machine's own sitecustomize, as if it had never been there."""
import os
import sys

_own = sys.modules[__name__]
_folder = os.path.dirname(os.path.abspath(__file__))


def _ask_for_operators():
    # By its path: a program may have its own package "tacho".
    import importlib.util
    path = os.path.join(os.path.dirname(_folder), "torch_trace.py")
    spec = importlib.util.spec_from_file_location("_tacho_torch_trace", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.when_imported()


def _hand_over():
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _folder]
    del sys.modules[__name__]
    try:
        import sitecustomize  # noqa: F401 - the machine's
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault(__name__, _own)


try:
    _ask_for_operators()
except Exception as _error:  # the program matters more
    sys.stderr.write("tacho: --torch-trace: %s: operators of this process are not recorded\n" % _error)
_hand_over()
