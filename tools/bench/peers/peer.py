#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python peers of `backplane bench ops` and `bench model`: peer.py torch|onnxruntime.

The process reads and writes one JSON object per line on its standard streams. It first writes
{"name": .., "version": ..}, or {"error": why}. Then it replies to each line that it reads with one line:
  {"do": "prepare", "op", "dtype", "inputs": [[dtype, shape, file], ..],
   "outputs": [[dtype, shape], ..], "attributes": {..}, "threads": n, "folder": for its outputs}
    -> {"ns": time of the first call, "outputs": [file, ..]} or {"error": why}
  {"do": "prepare_model", "values": [{"role", "shape", "file"}, ..],
   "nodes": [{"op", "attributes", "inputs": [view, ..], "outputs": [view, ..]}, ..],
   "threads": n, "folder"}
    -> like the reply to "prepare", with the values whose role is output
  {"do": "time", "calls": n} -> {"ns": time of n calls}
  {"do": "release"} -> {}
A view is {"number": n}, or {"value": index} with optional "reshape", "slice": [axis, begin, end]
and "permute", which apply in this order. All values of models are f32.
The peer measures the times, so the times exclude the pipe and the files. Files contain raw, dense data in the
machine's byte order."""
import json
import os
import sys
import time


class Unsupported(Exception):
    pass


class Torch:
    def __init__(self):
        import torch
        self.torch = torch
        self.name, self.version = "PyTorch", torch.__version__
        self.dtypes = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8,
                       "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}
        torch.set_grad_enabled(False)

    def tensor(self, dtype, shape, path):
        if dtype not in self.dtypes:
            raise Unsupported("it has no such dtype")
        data = self.files[path]
        flat = self.torch.frombuffer(data, dtype=self.dtypes[dtype]) if data else self.torch.empty(0, dtype=self.dtypes[dtype])
        return flat.reshape(shape).clone()

    def prepare(self, case):
        torch, op, attributes = self.torch, case["op"], case["attributes"]
        torch.set_num_threads(case["threads"])
        inputs = [self.tensor(*given) for given in case["inputs"]]
        out_dtype = self.dtypes.get(case["outputs"][0][0])
        axis = int(attributes.get("axis", 0))
        axes = [i for i in range(8) if int(attributes.get("axes", 0)) >> i & 1]
        functional = torch.nn.functional
        same = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "max": torch.maximum, "min": torch.minimum,
                "abs": torch.abs, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "tanh": torch.tanh,
                "erf": torch.erf, "sin": torch.sin, "cos": torch.cos, "neg": torch.neg, "copy": torch.clone, "pow": torch.pow,
                "silu": functional.silu, "sigmoid": torch.sigmoid, "select": torch.where}
        if op in same:
            if op in ("div", "abs", "neg") and not inputs[0].is_floating_point():
                raise Unsupported("the peer compares floats only")
            return lambda: [same[op](*inputs)]
        if op == "matmul":
            if not inputs[0].is_floating_point() or out_dtype != inputs[0].dtype:
                raise Unsupported("torch.matmul keeps its dtype, and takes floats")
            return lambda: [torch.matmul(*inputs)]
        if op == "cast":
            return lambda: [inputs[0].to(out_dtype)]
        if op == "reduce_sum":
            return lambda: [torch.sum(inputs[0], axes, keepdim=True)]
        if op in ("reduce_max", "reduce_min"):
            reduce = torch.amax if op == "reduce_max" else torch.amin
            return lambda: [reduce(inputs[0], axes, keepdim=True)]
        if op == "softmax":
            return lambda: [torch.softmax(inputs[0], axis)]
        if op == "gelu":
            kind = "tanh" if int(attributes["approximation"]) == 1 else "none"
            return lambda: [functional.gelu(inputs[0], approximate=kind)]
        if op == "cumsum" and not int(attributes["exclusive"]) and not int(attributes["reverse"]):
            return lambda: [torch.cumsum(inputs[0], axis)]
        if op == "sort" and not int(attributes["descending"]):
            # Omits the indices, because torch returns them as i64.
            return lambda: [torch.sort(inputs[0], dim=axis, stable=True).values]
        if op == "layer_norm" and len(inputs) == 1 and axes == [inputs[0].dim() - 1]:
            return lambda: [functional.layer_norm(inputs[0], inputs[0].shape[-1:], eps=attributes["epsilon"])]
        if op == "group_norm" and len(inputs) == 1:
            return lambda: [functional.group_norm(inputs[0], int(attributes["groups"]), eps=attributes["epsilon"])]
        if op == "linear" and len(inputs) == 2 and not int(attributes["activation"]):
            return lambda: [functional.linear(*inputs)]
        if op == "conv" and len(inputs) == 2 and int(attributes["spatial_rank"]) == 2 and not int(attributes["activation"]):
            pad = [int(value) for value in attributes["pad_begin"][:2]]
            if pad != [int(value) for value in attributes["pad_end"][:2]]:
                raise Unsupported("the peer pads both sides alike")
            stride, dilation = ([int(value) for value in attributes[name][:2]] for name in ("stride", "dilation"))
            return lambda: [functional.conv2d(*inputs, None, stride, pad, dilation, int(attributes["groups"]))]
        if op == "attention" and len(inputs) == 3 and not int(attributes["causal"]):
            scale = attributes["scale"]
            return lambda: [torch.matmul(torch.softmax(torch.matmul(inputs[0], inputs[1].transpose(-1, -2)) * scale, -1), inputs[2])]
        raise Unsupported("the peer has no such operator")

    # Returns a function that runs the nodes on a list of tensors. The nodes write caches in place,
    # as eager programs do.
    def prepare_model(self, model):
        torch, functional = self.torch, self.torch.nn.functional
        torch.set_num_threads(model["threads"])
        values = [self.tensor("f32", value["shape"], value["file"]) if "file" in value else torch.empty(value["shape"])
                  for value in model["values"]]

        def seen(view):
            if "number" in view:
                return torch.tensor(view["number"])
            tensor = values[view["value"]]
            if "reshape" in view:
                tensor = tensor.reshape(view["reshape"])
            if "slice" in view:
                axis, begin, end = view["slice"]
                tensor = tensor.narrow(axis, begin, end - begin)
            return tensor.permute(view["permute"]) if "permute" in view else tensor

        def store(view, result):
            if "slice" in view:
                seen(view).copy_(result)
                return
            if "permute" in view:
                result = result.permute([view["permute"].index(axis) for axis in range(result.dim())])
            values[view["value"]] = result.reshape(model["values"][view["value"]]["shape"])

        def computed(node):
            op, attributes, inputs = node["op"], node["attributes"], [seen(view) for view in node["inputs"]]
            if op == "linear":
                return activated(functional.linear(*inputs), int(attributes["activation"]))
            if op == "conv":
                pad, stride = ([int(value) for value in attributes[name][:2]] for name in ("pad_begin", "stride"))
                return activated(functional.conv2d(*inputs, stride, pad), int(attributes["activation"]))
            if op == "layer_norm":
                return functional.layer_norm(inputs[0], inputs[0].shape[-1:], *inputs[1:], attributes["epsilon"])
            if op == "attention":
                return functional.scaled_dot_product_attention(*inputs, scale=attributes["scale"])
            return {"add": torch.add, "max": torch.maximum, "copy": lambda x: x}[op](*inputs)

        def activated(x, activation):
            return {0: lambda x: x, 1: functional.relu, 2: functional.gelu}[activation](x)

        results = [index for index, value in enumerate(model["values"]) if value["role"] == "output"]

        def call():
            for node in model["nodes"]:
                store(node["outputs"][0], computed(node))
            return [values[index] for index in results]

        return call

    def bytes_of(self, tensor):
        return tensor.contiguous().view(self.torch.uint8).numpy().tobytes() if tensor.dim() else tensor.reshape(1).view(
            self.torch.uint8).numpy().tobytes()


class OnnxRuntime:
    def __init__(self):
        import numpy
        import onnx
        import onnxruntime
        self.numpy, self.onnx, self.runtime = numpy, onnx, onnxruntime
        self.name, self.version = "ONNX Runtime", onnxruntime.__version__
        self.dtypes = {"f32": numpy.float32, "f64": numpy.float64, "i8": numpy.int8, "u8": numpy.uint8, "i32": numpy.int32,
                       "i64": numpy.int64, "bool": numpy.bool_}

    # Returns the ONNX operator of a case and its attributes.
    def node(self, case, rank):
        op, attributes = case["op"], case["attributes"]
        named = {"add": "Add", "sub": "Sub", "mul": "Mul", "max": "Max", "min": "Min", "abs": "Abs", "exp": "Exp", "log": "Log",
                 "sqrt": "Sqrt", "tanh": "Tanh", "erf": "Erf", "sigmoid": "Sigmoid", "copy": "Identity", "select": "Where",
                 "matmul": "MatMul"}
        if op in named:
            if op == "matmul" and case["inputs"][0][0] not in ("f32", "f64"):
                raise Unsupported("MatMul takes floats")
            return named[op], {}
        if op == "softmax":
            return "Softmax", {"axis": int(attributes["axis"])}
        if op in ("reduce_max", "reduce_min"):
            axes = [i for i in range(rank) if int(attributes["axes"]) >> i & 1]
            return {"reduce_max": "ReduceMax", "reduce_min": "ReduceMin"}[op], {"axes": axes, "keepdims": 1}
        if op == "conv" and len(case["inputs"]) == 2 and not int(attributes["activation"]):
            count = int(attributes["spatial_rank"])
            whole = {name: [int(value) for value in attributes[name][:count]] for name in ("stride", "dilation", "pad_begin", "pad_end")}
            return "Conv", {"strides": whole["stride"], "dilations": whole["dilation"], "pads": whole["pad_begin"] + whole["pad_end"],
                            "group": int(attributes["groups"])}
        raise Unsupported("the peer has no such operator")

    def prepare(self, case):
        helper = self.onnx.helper
        if any(given[0] not in self.dtypes for given in case["inputs"] + case["outputs"]):
            raise Unsupported("it has no such dtype")
        kind, attributes = self.node(case, len(case["inputs"][0][1]))

        def described(prefix, operands):
            return [helper.make_tensor_value_info(f"{prefix}{i}", helper.np_dtype_to_tensor_dtype(self.numpy.dtype(self.dtypes[one[0]])),
                                                  one[1]) for i, one in enumerate(operands)]

        inputs, outputs = described("x", case["inputs"]), described("y", case["outputs"])
        names = [[value.name for value in side] for side in (inputs, outputs)]
        graph = helper.make_graph([helper.make_node(kind, *names, **attributes)], "case", inputs, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        arrays = {name: self.numpy.frombuffer(self.files[path], self.dtypes[dtype]).reshape(shape)
                  for name, (dtype, shape, path) in zip(names[0], case["inputs"])}
        results = [(name, self.dtypes[dtype], shape) for name, (dtype, shape) in zip(names[1], case["outputs"])]
        return self.bound(model, arrays, results, case["threads"])

    # Builds one graph, which the runtime may fuse. The input of a cache contains the earlier
    # tokens. The node that writes the cache concatenates the new token.
    def prepare_model(self, model):
        helper, numpy = self.onnx.helper, self.numpy
        nodes, initializers, inputs, names = [], [], [], [f"v{index}" for index in range(len(model["values"]))]
        arrays = {}

        def array_of(value):
            return numpy.frombuffer(self.files[value["file"]], numpy.float32).reshape(value["shape"])

        def constant(array):
            name = f"c{len(initializers)}"
            initializers.append(self.onnx.numpy_helper.from_array(array, name))
            return name

        def emit(kind, given, **attributes):
            name = f"n{len(nodes)}"
            nodes.append(helper.make_node(kind, given, [name], **attributes))
            return name

        def reshaped(name, shape):
            return emit("Reshape", [name, constant(numpy.array(shape, numpy.int64))])

        # The caches that a node writes. Their inputs contain the tokens before the written slice.
        past = {view["value"]: view["slice"] for node in model["nodes"] for view in node["outputs"] if "slice" in view}
        for index, value in enumerate(model["values"]):
            if value["role"] == "weight":
                initializers.append(self.onnx.numpy_helper.from_array(array_of(value), names[index]))
            elif "file" in value:
                data = array_of(value)
                if index in past:
                    data = numpy.ascontiguousarray(numpy.take(data, range(past[index][1]), past[index][0]))
                arrays[names[index]] = data
                inputs.append(helper.make_tensor_value_info(names[index], self.onnx.TensorProto.FLOAT, data.shape))

        def seen(view):
            if "number" in view:
                return constant(numpy.array(view["number"], numpy.float32))
            name = names[view["value"]]
            if "reshape" in view:
                name = reshaped(name, view["reshape"])
            return emit("Transpose", [name], perm=view["permute"]) if "permute" in view else name

        def activated(name, activation):
            if activation == 0:
                return name
            if activation == 1:
                return emit("Relu", [name])
            half = emit("Mul", [name, constant(numpy.array(0.5, numpy.float32))])
            error = emit("Erf", [emit("Div", [name, constant(numpy.array(2 ** 0.5, numpy.float32))])])
            return emit("Mul", [half, emit("Add", [error, constant(numpy.array(1, numpy.float32))])])

        for node in model["nodes"]:
            op, attributes, out, given = node["op"], node["attributes"], node["outputs"][0], [seen(view) for view in node["inputs"]]
            if op == "linear":
                result = activated(emit("Gemm", given, transB=1), int(attributes["activation"]))
            elif op == "conv":
                pads = [int(value) for name in ("pad_begin", "pad_end") for value in attributes[name][:2]]
                result = activated(emit("Conv", given, pads=pads, strides=[int(value) for value in attributes["stride"][:2]]),
                                   int(attributes["activation"]))
            elif op == "layer_norm":
                result = emit("LayerNormalization", given, axis=-1, epsilon=attributes["epsilon"])
            elif op == "attention":
                product = emit("MatMul", [given[0], emit("Transpose", [given[1]], perm=[0, 1, 3, 2])])
                scaled = emit("Mul", [product, constant(numpy.array(attributes["scale"], numpy.float32))])
                result = emit("MatMul", [emit("Softmax", [scaled], axis=-1), given[2]])
            elif op == "copy" and out["value"] in past:
                result = emit("Concat", [names[out["value"]], given[0]], axis=out["slice"][0])
            elif op in ("add", "max"):
                result = emit({"add": "Add", "max": "Max"}[op], given)
            else:
                raise Unsupported(f"the peer has no {op} in a model")
            if "permute" in out:
                result = emit("Transpose", [result], perm=[out["permute"].index(axis) for axis in range(len(out["permute"]))])
            if "reshape" in out:
                result = reshaped(result, model["values"][out["value"]]["shape"])
            names[out["value"]] = result
        outputs = [(names[index], value["shape"]) for index, value in enumerate(model["values"]) if value["role"] == "output"]
        graph = helper.make_graph(nodes, "model", inputs, [helper.make_tensor_value_info(name, self.onnx.TensorProto.FLOAT, shape)
                                                           for name, shape in outputs], initializers)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        made.ir_version = 8
        results = [(name, self.numpy.float32, shape) for name, shape in outputs]
        return self.bound(made, arrays, results, model["threads"])

    # The runtime's threads spin during a run, which is the default. They do not spin after a run,
    # when other contestants are measured.
    def options(self, threads):
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.force_spinning_stop", "1")
        return options

    # Returns a function that runs the model on bound values, so that a run copies no data. `outputs`
    # has the name, the dtype and the shape of each output.
    def bound(self, made, arrays, outputs, threads):
        options = self.options(threads)
        session = self.runtime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        values = {name: self.runtime.OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()}
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        results = [self.runtime.OrtValue.ortvalue_from_shape_and_type(shape, dtype) for _, dtype, shape in outputs]
        for (name, _, _), value in zip(outputs, results):
            binding.bind_ortvalue_output(name, value)

        def call():
            session.run_with_iobinding(binding)
            return results

        call.kept = values
        return call

    def bytes_of(self, value):
        return value.numpy().tobytes()


def files_of(request):
    if request["do"] == "prepare":
        return [given[2] for given in request["inputs"]]
    return [value["file"] for value in request["values"] if "file" in value]


def contents(path):
    with open(path, "rb") as file:
        return bytearray(file.read())


def main(kind):
    # The output of libraries must not mix with the lines of the protocol.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def reply(value):
        replies.write(json.dumps(value) + "\n")
        replies.flush()

    try:
        peer = {"torch": Torch, "onnxruntime": OnnxRuntime}[kind]()
    except ImportError as error:
        reply({"error": str(error)})
        return
    reply({"name": peer.name, "version": peer.version})
    call = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] in ("prepare", "prepare_model"):
                peer.files = {path: contents(path) for path in files_of(request)}
                begin = time.perf_counter_ns()
                call = peer.prepare(request) if request["do"] == "prepare" else peer.prepare_model(request)
                results = call()
                ns = time.perf_counter_ns() - begin
                peer.files, files = {}, []
                for index, result in enumerate(results):
                    files.append(os.path.join(request["folder"], f"output{index}"))
                    with open(files[-1], "wb") as file:
                        file.write(peer.bytes_of(result))
                reply({"ns": ns, "outputs": files})
            elif request["do"] == "time":
                begin = time.perf_counter_ns()
                for _ in range(request["calls"]):
                    call()
                reply({"ns": time.perf_counter_ns() - begin})
            else:
                call = None
                reply({})
        except Exception as error:  # every exception of a library becomes an error reply
            call = None
            reply({"error": f"{type(error).__name__}: {error}" if not isinstance(error, Unsupported) else str(error)})


main(sys.argv[1])
