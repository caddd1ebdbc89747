"""PyTorch's operators as ranges: `--torch-trace` of tacho trace, profile and sys.

inject/sitecustomize.py loads this file before the program's first line. It does nothing until the program imports torch;
then these become ranges of the domain "torch", around what the program calls and without changing it:

  modules            every nn.Module's call, with the module's place in the model ("Net.layers.0.conv")
  functions          torch.nn.functional
  backward passes    torch.autograd.backward and grad; operators of the passes by torch's own emitter
  aten operators     by torch's emitter of NVTX or ROCTx ranges, where torch was built for a GPU
  everything that torch names itself: optimizer steps, data loaders, record_function
  compiled kernels   inductor's, with the operators that it fused and the lines of the model that they came from

A range's text is a part of an operator's name; its category is "kind place @ file:line", for example
"module Net.conv1 @ /home/u/train.py:31". A range with a payload is one end of a link: the forward and the backward call
of an autograd function have the same number.

How: the code of torch's own Python functions is replaced, not the functions. Who holds one, compares it, pickles it or
compiles it (torch.jit, torch.compile) finds the object that was always there. Nothing here is compiled against torch;
1.13 and 2.11 were tried.
"""
import atexit
import ctypes
import functools
import itertools
import os
import sys
import threading
import types
import weakref

_DOMAIN = b"torch"
_MOST_SITES = 200000  # of calls remembered; then all are forgotten and learnt again


def _beside(name):
    """A module of this folder, by its path: a program may have its own package "tacho"."""
    import importlib.util
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location("_tacho_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_library, _shapes = _beside("library"), _beside("torch_shapes")


def _attributes(category, payload=None):
    return _library.attributes(_DOMAIN, category, payload)


def _bytes(text):
    return text.encode("utf-8", "replace").replace(b"\0", b"")


# ---- when torch comes

class _Watcher:
    """On sys.meta_path until a package is imported: calls `install` right after its own import."""

    def __init__(self, package, install):
        self.package, self.install = package, install

    def find_spec(self, name, path=None, target=None):
        if name != self.package:
            return None
        import importlib.util
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        except BaseException:
            sys.meta_path.insert(0, self)
            raise
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            sys.meta_path.insert(0, self)
            return spec
        loader, execute = spec.loader, spec.loader.exec_module

        def exec_module(module):
            try:
                del loader.exec_module
            except AttributeError:
                pass
            try:
                execute(module)
            except BaseException:
                sys.meta_path.insert(0, self)  # the program may try again
                raise
            self.install(module)

        loader.exec_module = exec_module
        return spec


def when_imported():
    """Installs the ranges when the program imports torch; does nothing in a process that is not traced."""
    if _library.load(preloaded=True) is None:
        return
    sys.meta_path.insert(0, _Watcher("torch", install))
    if os.environ.get("TACHO_MEMORY") == "1":
        sys.meta_path.insert(0, _Watcher("cupy", install_cupy))


def install_cupy(cupy):
    """Records what CuPy's pool does with memory from now on (cupy_memory.py)."""
    try:
        _beside("cupy_memory").install(cupy, _library.load(preloaded=True), _swap)
    except Exception as error:
        sys.stderr.write("tacho: --memory does not know this CuPy (%s): %s: %s; of its memory only calls of CUDA are recorded\n" %
                         (getattr(cupy, "__version__", "?"), type(error).__name__, error))


def install(torch):
    """Makes ranges of what `torch` does from now on; a fault costs the ranges, never the program."""
    try:
        _Tracer(torch, _library.load(preloaded=True)).install()
    except Exception as error:
        sys.stderr.write("tacho: --torch-trace does not know this PyTorch (%s): %s: %s; some of its operators are not "
                         "recorded\n" % (getattr(torch, "__version__", "?"), type(error).__name__, error))


# ---- replacing the code of a function

# In front of the original: push(args) says whether a range was opened, which pop() closes.
_SCOPE = """
        if push(args):
            try:
                return original(*args, **kwargs)
            finally:
                pop()
        return original(*args, **kwargs)
"""
# The range goes on after the call, and ends with another one's.
_OPENS = """
        push(args)
        return original(*args, **kwargs)
"""
_CLOSES = """
        try:
            return original(*args, **kwargs)
        finally:
            pop()
"""
# Reports the object that the call made.
_TOLD = """
        number = push(args)
        try:
            result = original(*args, **kwargs)
        finally:
            pop()
        push(args, result, number)
        return result
"""


def _hide_from_compiler(torch):
    """torch.compile must not compile what runs around torch's functions. It passes over code of torch's own files: this file's
    code says from now on that it is in the one whose functions it runs around. Returns a function that hides further code by name."""
    place = torch.nn.Module.__call__.__code__.co_filename

    def moved(code):
        return code.replace(co_filename=place, co_consts=tuple(
            moved(constant) if isinstance(constant, types.CodeType) else constant for constant in code.co_consts))

    skip = _skipping(torch)
    own = (__name__, _shapes.__name__)
    for value in [*globals().values(), *vars(_shapes).values()]:
        members = list(vars(value).values()) if isinstance(value, type) and value.__module__ in own else [value]
        for member in members:
            member = getattr(member, "__func__", member)
            if isinstance(member, types.FunctionType) and member.__module__ in own:
                member.__code__ = moved(member.__code__)
                skip(member.__code__)
    return skip


def _skipping(torch):
    """Makes the compiler pass over a code object and those within, if this torch allows it."""
    frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    one = getattr(frames, "skip_code", None)
    if one is None and hasattr(frames, "set_code_exec_strategy"):
        try:
            strategy = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)
        except Exception:
            return lambda code: None
        one = functools.partial(lambda strategy, code: frames.set_code_exec_strategy(code, strategy), strategy)

    def skip(code):
        if one is None:
            return
        one(code)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                skip(constant)

    return skip


_hide = lambda code: None  # noqa: E731 - set when torch is imported


def _swap(function, push, pop, body=_SCOPE):
    """Puts ranges around every call of a Python function by replacing its code. The function stays the same object, says that
    it is in the same file and at the same line, and torch.compile goes on with the code it had."""
    code = function.__code__
    original = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    original.__kwdefaults__, original.__annotations__ = function.__kwdefaults__, function.__annotations__
    original.__qualname__ = function.__qualname__
    original.__module__ = function.__module__
    original.__dict__.update(function.__dict__)
    # The new code must have the variables of the same closure: it names them and does not use them.
    free = ", ".join(code.co_freevars)
    source = "def make(%s):\n    def call(*args, **kwargs):\n" % free
    if free:
        source += "        if 0:\n            %s\n" % free
    source += "        push, pop, original = 'tacho push', 'tacho pop', 'tacho original'\n" + body
    source += "    return call\n"
    space = {}
    exec(compile(source, code.co_filename, "exec"), space)
    template = space["make"](*[None] * len(code.co_freevars)).__code__
    constants = {"tacho push": push, "tacho pop": pop, "tacho original": original}

    def resolved(value):
        if isinstance(value, tuple):  # the three may be one constant
            return tuple(resolved(each) for each in value)
        return constants.get(value, value) if isinstance(value, str) else value

    changes = {"co_consts": tuple(resolved(value) for value in template.co_consts), "co_name": code.co_name,
               "co_firstlineno": code.co_firstlineno}
    if hasattr(code, "co_qualname"):
        changes["co_qualname"] = code.co_qualname
    function.__wrapped__ = original  # for inspect: its signature and source
    function._torchdynamo_inline = original
    function.__code__ = template.replace(**changes)
    _hide(function.__code__)


# ---- names and places

class _Site:
    """One place from which one thing is called: the text and attributes of its ranges."""
    __slots__ = ("code", "module", "text", "attributes", "pointer")

    def __init__(self, code, module, text, category):
        self.code, self.module, self.text = code, module, _bytes(text)
        self.attributes = _attributes(_bytes(category))
        self.pointer = ctypes.byref(self.attributes)


def _place(frame):
    file = frame.f_code.co_filename
    if not file.startswith(("/", "<")):
        file = os.path.abspath(file)
    return "%s:%d" % (file, frame.f_lineno)


class _Thread(threading.local):
    def __init__(self):
        self.modules = []  # that are being called, outermost first
        self.emitting = None  # None: not tried yet
        self.shapes = False  # with shapes of inputs
        self.theirs = 0  # profilers of the program's own that run


class _Tracer:
    def __init__(self, torch, library):
        self.torch, self.library = torch, library
        self.push_with, self.pop_from = library.tacho_range_push_with, library.tacho_range_pop_from
        self.local = _Thread()
        self.sites = {}
        self.paths = {}  # id of a module -> (weak reference, its place in the model)
        self.numbers = itertools.count(1)  # of calls of autograd functions
        self.graphs = []  # that dynamo made: {name of a node: "file:line"}, newest last
        self.root = os.path.dirname(getattr(torch, "__file__", None) or "/no/torch/__init__.py") + "/"
        self.graph_of = {}  # a file that inductor generated -> its graph
        self.gpu = torch.version.cuda is not None or getattr(torch.version, "hip", None) is not None
        self.every = os.environ.get("TACHO_TORCH_SHAPES") == "all"  # operator has its shapes
        self.stretches = None  # that have shapes
        self.configs = {}  # of torch's emitter, without and with shapes

    def install(self):
        global _hide
        torch = self.torch
        _hide = _hide_from_compiler(torch)
        self.library.tacho_mark_with(
            _bytes("torch %s" % torch.__version__),
            ctypes.byref(_attributes(_bytes("version %s" % ("gpu" if self.gpu else "cpu")))))
        if self.gpu:
            try:
                self.share_with_profilers()
                self.emit()
            except Exception as error:  # modules and functions are worth having without it
                self.gpu = False
                sys.stderr.write("tacho: --torch-trace: PyTorch %s does not emit its ATen operators (%s: %s): they are not "
                                 "recorded\n" % (torch.__version__, type(error).__name__, error))
        if self.gpu and os.environ.get("TACHO_TORCH_SHAPES") == "sampled":
            self.sample_shapes()
        module = torch.nn.Module.__call__
        _swap(module, self.push_module, self.pop_module)
        self.hook_functions()
        for name in ("backward", "grad"):
            function = getattr(torch.autograd, name, None)
            if isinstance(function, types.FunctionType):
                _swap(function, self.pusher("torch.autograd." + name, "call"), self.pop)
        if not self.gpu:
            self.hook_without_emitter()
        if os.environ.get("TACHO_MEMORY") == "1":
            self.hook_optimizers()
        self.watch_compiler()

    # ---- ranges

    def pop(self):
        self.pop_from(_DOMAIN)

    def site(self, key, frame, module, text, category):
        if len(self.sites) > _MOST_SITES:
            self.sites.clear()
        made = self.sites[key] = _Site(frame.f_code, module, text, "%s @ %s" % (category, _place(frame)))
        return made

    def pusher(self, text, kind):
        """The push() of a function whose ranges have this text."""
        sites, push_with, local, frame_of = self.sites, self.push_with, self.local, sys._getframe

        def push(args):
            if local.emitting is None:
                self.emit()
            try:
                frame = frame_of(2)
            except ValueError:  # called by a thread of torch's own
                push_with(_bytes(text), ctypes.byref(_attributes(_bytes(kind))))
                return True
            key = (text, id(frame.f_code), frame.f_lasti)
            if self.stretches is not None and not local.modules:
                self.outermost(key)
            site = sites.get(key)
            if site is None or site.code is not frame.f_code:
                site = self.site(key, frame, None, text, kind)
            push_with(site.text, site.pointer)
            return True

        return push

    def push_module(self, args):
        module, local = args[0], self.local
        if local.emitting is None:
            self.emit()
        if self.stretches is not None and not local.modules:
            self.outermost(id(module))
        try:
            frame = sys._getframe(2)
        except ValueError:
            return False
        key = (id(module), id(frame.f_code), frame.f_lasti)
        site = self.sites.get(key)
        if site is None or site.code is not frame.f_code or site.module() is not module:
            name = getattr(module, "original_name", None) if type(module).__name__ == "RecursiveScriptModule" else None
            text = "nn.Module.%s.forward" % (name if isinstance(name, str) else type(module).__name__)
            site = self.site(key, frame, weakref.ref(module), text, "module " + self.path_of(module))
        self.push_with(site.text, site.pointer)
        local.modules.append(module)
        return True

    def pop_module(self):
        self.local.modules.pop()
        self.pop_from(_DOMAIN)

    def path_of(self, module):
        """The module's place in the model: "Net.layers.0.conv"; the outermost module that is called begins it."""
        known = self.paths.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        outer = self.local.modules
        try:
            if outer:
                self.learn(outer[0], self.paths[id(outer[0])][1])
            else:
                self.learn(module, type(module).__name__)
        except Exception:  # a model with named_modules() of its own
            pass
        known = self.paths.get(id(module))
        if known is None or known[0]() is not module:  # made on the way, or hidden from its parent
            above = self.paths.get(id(outer[-1])) if outer else None
            self.remember(module, (above[1] + "." if above is not None else "") + type(module).__name__)
            known = self.paths[id(module)]
        return known[1]

    def learn(self, root, path):
        for name, module in root.named_modules():
            self.remember(module, path + "." + name if name else path)

    def remember(self, module, path):
        number = id(module)
        self.paths[number] = (weakref.ref(module, lambda _: self.paths.pop(number, None)), path)

    # ---- torch's own emitter, one a thread: threads of the backward pass inherit theirs

    def emit(self):
        self.local.emitting = False
        if not self.gpu or self.local.theirs:
            return
        shapes = self.every or (self.stretches is not None and self.stretches.on)
        if shapes not in self.configs:
            self.configs[shapes] = self.config(shapes)
        try:
            self.enable_profiler(self.configs[shapes], set())
        except RuntimeError as error:
            if "already enabled" not in str(error):
                raise
            return  # this thread runs a backward pass, and has the emitter of the one that asked for it
        self.local.emitting, self.local.shapes = True, shapes

    def config(self, shapes):
        """Of torch's emitter. With shapes it writes ", sizes = [[8, 3], [3, 5]]" behind an operator's name."""
        from torch._C._profiler import _ExperimentalConfig
        autograd = self.torch.autograd
        words = (autograd.ProfilerState.NVTX, shapes, False, False, False, False, _ExperimentalConfig())
        try:
            return autograd.ProfilerConfig(*words)
        except TypeError:  # versions that want the name of a trace
            return autograd.ProfilerConfig(*words, "")

    # ---- shapes in stretches of the run

    def sample_shapes(self):
        def mark(word):
            self.library.tacho_mark_with(word, ctypes.byref(_attributes(b"shapes")))

        stretches = _shapes.Stretches(lambda on: mark(b"begin" if on else b"end"))

        def forked():
            mark(b"sampled")
            if stretches.on:
                mark(b"begin")

        mark(b"sampled")
        os.register_at_fork(after_in_child=forked)
        register = getattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_post_hook", None)
        if register is not None:  # from 2.0 on
            register(lambda *_: stretches.step_ended())
        self.stretches = stretches
        graph = getattr(getattr(self.torch, "cuda", None), "CUDAGraph", None)
        begin, end = getattr(graph, "capture_begin", None), getattr(graph, "capture_end", None)
        if isinstance(begin, types.FunctionType) and isinstance(end, types.FunctionType):
            _swap(begin, lambda args: self.capture(True), None, _OPENS)
            _swap(end, None, lambda: self.capture(False), _CLOSES)

    def outermost(self, key):
        """Something is called outside of every module: here shapes are turned on and off."""
        self.stretches.call(key)
        self.follow()

    def capture(self, begins):
        self.stretches.capture(begins)
        self.follow()

    def follow(self):
        """Emits on this thread as the stretches say."""
        local = self.local
        if local.emitting and local.shapes != self.stretches.on:
            try:
                self.disable_profiler()
            except RuntimeError:  # something of torch's lies on top of it
                return
            self.emit()

    def share_with_profilers(self):
        """Torch serves one profiler a thread: while the program runs its own, ours is off."""
        autograd, local = self.torch.autograd, self.local
        profiler = autograd.profiler
        self.enable_profiler, self.disable_profiler = autograd._enable_profiler, autograd._disable_profiler

        def stop():
            if local.emitting:
                self.disable_profiler()
            local.emitting = False

        def before(original):
            @functools.wraps(original)
            def call(*args, **kwargs):
                stop()
                return original(*args, **kwargs)
            return call

        # Torch warns of threads that end while it emits.
        atexit.register(stop)
        _swap(threading.Thread._bootstrap_inner, None, stop, _CLOSES)
        enable = profiler._enable_profiler
        disable = profiler._disable_profiler

        @functools.wraps(enable)
        def begin(*args, **kwargs):
            stop()
            result = enable(*args, **kwargs)
            local.theirs += 1
            return result

        @functools.wraps(disable)
        def end(*args, **kwargs):
            result = disable(*args, **kwargs)
            local.theirs = max(0, local.theirs - 1)
            local.emitting = None
            return result

        if hasattr(profiler, "_prepare_profiler"):
            profiler._prepare_profiler = before(profiler._prepare_profiler)
        profiler._enable_profiler, profiler._disable_profiler = begin, end

    # ---- what memory is for (--memory)

    def hook_optimizers(self):
        """Marks say which memory parameters, gradients and states of optimizers are, after an optimizer's first two steps and
        whenever it has others: what a step allocates anew is known by the pass that does."""
        module = sys.modules.get("torch.optim.optimizer")  # torch.optim deletes its own name for it
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is None:  # before 2.0
            sys.stderr.write("tacho: --memory: PyTorch %s has no hook of optimizers; parameters, gradients and their states are "
                             "told apart by when they are allocated and freed\n" % self.torch.__version__)
            return
        self.described = {}  # id of an optimizer -> (steps, its parameters and states)
        register(self.describe)

    def describe(self, optimizer, *_):
        try:
            steps, count = self.described.get(id(optimizer), (0, 0))
            now = sum(len(group["params"]) for group in optimizer.param_groups) + len(optimizer.state)
            self.described[id(optimizer)] = (steps + 1, now)
            if steps >= 2 and now == count:
                return
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    self.holds("parameter", parameter)
                    self.holds("gradient", parameter.grad)
            for state in list(optimizer.state.values()):
                for value in state.values() if isinstance(state, dict) else ():
                    self.holds("optimizer state", value)
        except Exception:  # an optimizer of another shape: its memory is known by the passes
            pass

    def holds(self, what, tensor):
        if not isinstance(tensor, self.torch.Tensor) or tensor.device.type == "cpu":
            return
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
        self.library.tacho_mark_with(_bytes(what), ctypes.byref(_attributes(b"memory", storage.data_ptr())))

    # ---- torch.nn.functional

    def hook_functions(self):
        functional = self.torch.nn.functional
        seen = set()
        for name, value in sorted(vars(functional).items()):
            if (isinstance(value, types.FunctionType) and not name.startswith("_") and id(value) not in seen and
                    value.__module__ in (functional.__name__, "torch._jit_internal") and
                    name not in ("boolean_dispatch", "has_torch_function", "handle_torch_function", "assert_int_or_pair")):
                seen.add(id(value))
                _swap(value, self.pusher("torch.nn.functional." + name, "function"), self.pop)

    def hook_without_emitter(self):
        """Makes the ranges of torch's emitter in a torch without one."""
        torch = self.torch
        record_function = torch.autograd.profiler.record_function
        _swap(record_function.__enter__, self.push_named, None, _OPENS)
        _swap(record_function.__exit__, None, self.pop, _CLOSES)
        self.hook_built_in_functions()
        function = torch.autograd.Function
        own = function.__dict__.get("apply")
        if isinstance(own, classmethod):
            _swap(own.__func__, self.push_applied, self.pop, _TOLD)
        else:
            def apply(cls, *args, **kwargs):  # before 2.0 it is inherited from a class that is not Python's
                return super(function, cls).apply(*args, **kwargs)

            _swap(apply, self.push_applied, self.pop, _TOLD)
            function.apply = classmethod(apply)
        backward = torch.autograd.function.BackwardCFunction.apply
        _swap(backward, self.push_backward, self.pop)

    def push_named(self, args):
        name = args[0].name
        kind = "optimizer" if name.startswith("Optimizer.") else "data" if "DataLoader" in name else "user"
        self.push_with(_bytes(name), ctypes.byref(_attributes(_bytes(kind))))
        return True

    def push_applied(self, args, result=None, number=None):
        if number is None:
            number = next(self.numbers)
            self.push_numbered(args[0].__name__, "autograd", number, 3)
            return number
        backward = getattr(args[0], "_backward_cls", ())
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            node = getattr(tensor, "grad_fn", None)
            if node is not None and isinstance(node, backward):
                node.metadata["tacho"] = number
                break
        return number

    def push_backward(self, args):
        node = args[0]
        self.push_numbered(type(node).__name__, "backward", node.metadata.get("tacho", 0), 3)
        return True

    def push_numbered(self, text, kind, number, depth):
        try:
            kind = "%s @ %s" % (kind, _place(sys._getframe(depth)))
        except ValueError:
            pass
        self.push_with(_bytes(text), ctypes.byref(_attributes(_bytes(kind), number)))

    def hook_built_in_functions(self):
        """Functions of torch.nn.functional that are no Python functions: seen where torch's modules call them. The modules get
        a namespace with functions that open ranges; torch.nn.functional itself stays as it is."""
        torch = self.torch
        functional = torch.nn.functional
        compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
        originals = {}
        namespace = types.ModuleType(functional.__name__, functional.__doc__)
        for name, value in vars(functional).items():
            if isinstance(value, types.BuiltinFunctionType) and not name.startswith(("_", "has_torch")):
                value = self.wrapped(name, value, compiling, originals)
            setattr(namespace, name, value)
        for module in [each for name, each in list(sys.modules.items()) if name.startswith("torch.nn.modules.")]:
            if getattr(module, "F", None) is functional:
                module.F = namespace
        # torch.jit asks by identity which function is an operator of its own.
        for name in ("torch.jit._builtins", "torch.jit._recursive"):
            module = sys.modules.get(name)
            if module is not None and hasattr(module, "_find_builtin"):
                module._find_builtin = self.unwrapping(module._find_builtin, originals)

    def wrapped(self, name, original, compiling, originals):
        push, pop = self.pusher("torch.nn.functional." + name, "function"), self.pop

        @functools.wraps(original)
        def call(*args, **kwargs):
            if compiling is not None and compiling():
                return original(*args, **kwargs)
            push(args)
            try:
                return original(*args, **kwargs)
            finally:
                pop()

        originals[id(call)] = (call, original)
        return call

    @staticmethod
    def unwrapping(find, originals):
        @functools.wraps(find)
        def found(function):
            return find(originals.get(id(function), (None, function))[1])
        return found

    # ---- what torch.compile made

    def watch_compiler(self):
        """Dynamo's graphs know the lines of the model, inductor's files name the graphs' nodes, and one method launches every
        kernel of inductor. All three are in modules that are imported when something is compiled."""
        wanted = {"torch._dynamo.output_graph": self.hook_dynamo, "torch._inductor.codecache": self.hook_files,
                  "torch._inductor.runtime.triton_heuristics": self.hook_launches,
                  "torch._inductor.triton_heuristics": self.hook_launches,
                  "torch._inductor.triton_ops.autotune": self.hook_launches}
        for name in list(wanted):
            if name in sys.modules:
                _quietly(wanted.pop(name), sys.modules[name])
        sys.meta_path.insert(0, _Compiler(wanted))

    def hook_dynamo(self, module):
        compiles = getattr(getattr(module, "OutputGraph", None), "call_user_compiler", None)
        if isinstance(compiles, types.FunctionType):
            _swap(compiles, self.push_graph, self.pop_graph)

    def push_graph(self, args):
        names = {}
        try:
            for node in args[1].graph.nodes:
                line = _line_of(getattr(node, "stack_trace", None) or node.meta.get("stack_trace"), self.root)
                if line:
                    names[node.name] = line
        except Exception:  # a compiler of another shape: its kernels are without lines
            pass
        self.graphs.append(names)
        del self.graphs[:-256]
        return True

    def pop_graph(self):
        pass

    def hook_files(self, module):
        load = getattr(module, "PyCodeCache", None).__dict__.get("load_by_key_path")
        if isinstance(load, classmethod) and isinstance(load.__func__, types.FunctionType):
            _swap(load.__func__, self.push_file, self.pop_graph)

    def push_file(self, args):
        if self.graphs:
            self.graph_of.update((each, self.graphs[-1]) for each in args if isinstance(each, str) and each.endswith(".py"))
        return True

    def hook_launches(self, module):
        run = getattr(getattr(module, "CachingAutotuner", None), "run", None)
        if isinstance(run, types.FunctionType):
            _swap(run, self.push_compiled, self.pop)

    def push_compiled(self, args):
        try:
            frame = sys._getframe(2)
            key = (id(args[0]), id(frame.f_code), frame.f_lasti)
            site = self.sites.get(key)
            if site is None or site.code is not frame.f_code:
                meta = getattr(args[0], "inductor_meta", None) or {}
                name = meta.get("kernel_name") or getattr(getattr(args[0], "fn", None), "__name__", "triton kernel")
                nodes, operators = _fused(frame, name)
                site = self.site(key, frame, None, name, "compiled %s %s" % (",".join(operators) or "-",
                                                                             ",".join(self.lines_of(frame, nodes)) or "-"))
            self.push_with(site.text, site.pointer)
            return True
        except Exception:
            return False

    def lines_of(self, frame, nodes):
        """Lines of the model behind a kernel's nodes: by the graph that its file was made for, else the newest that has them."""
        graph = self.graph_of.get(frame.f_code.co_filename)
        for names in [graph] if graph else reversed(self.graphs):
            lines = [names[node] for node in nodes if node in names]
            if lines:
                return list(dict.fromkeys(lines))
        return []


def _quietly(hook, module):
    try:
        hook(module)
    except Exception:  # compiled code is then without names
        pass


class _Compiler:
    """On sys.meta_path until the compiler's modules are imported: hooks each right after its own import."""

    def __init__(self, wanted):
        self.wanted = wanted

    def find_spec(self, name, path=None, target=None):
        if name not in self.wanted:
            return None
        import importlib.machinery
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return None
        hook = self.wanted.pop(name)
        loader, execute = spec.loader, spec.loader.exec_module

        def exec_module(module):
            try:
                del loader.exec_module
            except AttributeError:
                pass
            execute(module)
            _quietly(hook, module)

        loader.exec_module = exec_module
        return spec


def _line_of(stack, root):
    """The innermost line of the program in a stack as text, skipping torch's own folder."""
    if not stack:
        return None
    import re
    frames = re.findall(r'File "([^"]+)", line (\d+)', stack)
    own = [frame for frame in frames if not frame[0].startswith(root)]
    return "%s:%s" % (own or frames)[-1] if frames else None


def _fused(frame, kernel):
    """Inductor's facts about a kernel from the file that launches it: names of the graph's nodes that it was made of, and
    their ATen operators."""
    import re
    try:
        with open(frame.f_code.co_filename, encoding="utf-8", errors="replace") as file:
            text = file.read().split("\n")
    except OSError:
        return [], []
    definition = re.compile(r"^\s*%s\s*=" % re.escape(kernel))
    at = next((i for i, line in enumerate(text) if definition.match(line)), None)
    # Comments stand above the definition, and again above the call.
    for begin in [i for i in (at, frame.f_lineno - 1) if i is not None]:
        for line in reversed(text[max(0, begin - 200):begin]):
            line = line.strip()
            if line and not line.startswith("#"):
                break
            found = re.search(r"Source Nodes: \[([^\]]*)\], Original ATen: \[([^\]]*)\]", line)
            if found:
                return tuple([each.strip() for each in group.split(",") if each.strip()] for group in found.groups())
    return [], []
