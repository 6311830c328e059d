# SPDX-License-Identifier: Apache-2.0
"""The peer ONNX Runtime, which builds a graph of the operators."""
import numpy
import onnx
import onnxruntime
from onnx import helper

from unsupported import Unsupported


class OnnxRuntime:
    def __init__(self):
        self.name, self.version = "ONNX Runtime", onnxruntime.__version__
        self.dtypes = {"f32": numpy.float32, "f64": numpy.float64, "i8": numpy.int8, "u8": numpy.uint8, "i32": numpy.int32,
                       "i64": numpy.int64, "bool": numpy.bool_}

    # Does nothing, because a call of ONNX Runtime returns after its work has completed.
    def wait(self):
        pass

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
        if any(given[0] not in self.dtypes for given in case["inputs"] + case["outputs"]):
            raise Unsupported("it has no such dtype")
        kind, attributes = self.node(case, len(case["inputs"][0][1]))

        def described(prefix, operands):
            return [helper.make_tensor_value_info(f"{prefix}{i}", helper.np_dtype_to_tensor_dtype(numpy.dtype(self.dtypes[one[0]])),
                                                  one[1]) for i, one in enumerate(operands)]

        inputs, outputs = described("x", case["inputs"]), described("y", case["outputs"])
        names = [[value.name for value in side] for side in (inputs, outputs)]
        graph = helper.make_graph([helper.make_node(kind, *names, **attributes)], "case", inputs, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        arrays = {name: numpy.frombuffer(self.files[path], self.dtypes[dtype]).reshape(shape)
                  for name, (dtype, shape, path) in zip(names[0], case["inputs"])}
        results = [(name, self.dtypes[dtype], shape) for name, (dtype, shape) in zip(names[1], case["outputs"])]
        return self.bound(model, arrays, results, case["threads"])

    # Builds one graph of all nodes, whose operators ONNX Runtime may fuse. A cache is an input of the graph that
    # contains the earlier tokens. In place of the node that writes the new token to the cache, the graph concatenates
    # both.
    def prepare_model(self, model):
        nodes, initializers, inputs, names = [], [], [], [f"v{index}" for index in range(len(model["values"]))]
        arrays = {}

        def array_of(value):
            return numpy.frombuffer(self.files[value["file"]], self.dtypes[value["dtype"]]).reshape(value["shape"])

        def constant(array):
            name = f"c{len(initializers)}"
            initializers.append(onnx.numpy_helper.from_array(array, name))
            return name

        def emit(kind, given, domain="", **attributes):
            name = f"n{len(nodes)}"
            nodes.append(helper.make_node(kind, given, [name], domain=domain, **attributes))
            return name

        def reshaped(name, shape):
            return emit("Reshape", [name, constant(numpy.array(shape, numpy.int64))])

        # Maps each cache that a node writes to the written slice. The cache's input contains the tokens before this
        # slice.
        past = {view["value"]: view["slice"] for node in model["nodes"] for view in node["outputs"] if "slice" in view}
        # The weights, scales and zero points of quantized products. product_w4 converts these values to ONNX's layout.
        quantized = {view["value"] for node in model["nodes"] if node["op"] == "quantized_matmul" for view in node["inputs"][1:]}
        for index, value in enumerate(model["values"]):
            if index in quantized:
                continue
            if value["role"] == "weight":
                initializers.append(onnx.numpy_helper.from_array(array_of(value), names[index]))
            elif "file" in value:
                data = array_of(value)
                if index in past:
                    data = numpy.ascontiguousarray(numpy.take(data, range(past[index][1]), past[index][0]))
                arrays[names[index]] = data
                inputs.append(helper.make_tensor_value_info(names[index], helper.np_dtype_to_tensor_dtype(data.dtype), data.shape))

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

        # The extents [batch, heads, rows, extent] of a view of a cache or of a value.
        def heads_of(view):
            return [view["reshape"][axis] for axis in view["permute"]] if "permute" in view else model["values"][view["value"]]["shape"]

        # If several heads of queries share a head of keys, their rows are the rows of one matrix product.
        def attention(given, queries, keys, scale):
            query, key, value = given
            grouped = queries[1] != keys[1]
            if grouped:
                query = reshaped(query, [queries[0], keys[1], -1, queries[3]])
            product = emit("MatMul", [query, emit("Transpose", [key], perm=[0, 1, 3, 2])])
            scaled = emit("Mul", [product, constant(numpy.array(scale, numpy.float32))])
            mixed = emit("MatMul", [emit("Softmax", [scaled], axis=-1), value])
            return reshaped(mixed, queries) if grouped else mixed

        # Builds group_norm from InstanceNormalization, as PyTorch's ONNX export does.
        def group_norm(given, shape, attributes):
            groups = int(attributes["groups"])
            one, zero = (constant(numpy.full(groups, value, numpy.float32)) for value in (1, 0))
            normal = emit("InstanceNormalization", [reshaped(given[0], [shape[0], groups, -1]), one, zero], epsilon=attributes["epsilon"])
            gain, bias = (reshaped(name, [1, shape[1]] + [1] * (len(shape) - 2)) for name in given[1:])
            return emit("Add", [emit("Mul", [reshaped(normal, shape), gain]), bias])

        def product_w4(x, weight, scale, zero_point, attributes):
            if int(attributes["weight_bits"]) != 4 or zero_point.size != 1 or int(zero_point[0]) != 8:
                raise Unsupported("the peer multiplies weights of 4 bits whose zero point is 8")
            rows, blocks, block = weight.shape[0], scale.shape[1], int(attributes["block"])
            return emit("MatMulNBits", [x, constant(weight.reshape(rows, blocks, block // 2)), constant(scale.reshape(-1))],
                        "com.microsoft", K=blocks * block, N=rows, bits=4, block_size=block)

        def rope(x, operand, position, attributes):
            if int(attributes["interleaved"]) or int(attributes["rotary_extent"]):
                raise Unsupported("the peer rotates whole rows by pairs of halves")
            extent, positions = heads_of(operand)[3], array_of(model["values"][position["value"]])
            frequency = attributes["base"] ** (-numpy.arange(0, extent, 2) / extent)
            angle = numpy.arange(positions.max() + 1)[:, None] * frequency
            index = emit("Cast", [reshaped(names[position["value"]], [1, -1])], to=onnx.TensorProto.INT64)
            tables = [constant(table.astype(numpy.float32)) for table in (numpy.cos(angle), numpy.sin(angle))]
            return emit("RotaryEmbedding", [x, index, *tables], "com.microsoft")

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
            elif op == "rms_norm":
                result = emit("SimplifiedLayerNormalization", given, axis=-1, epsilon=attributes["epsilon"])
            elif op == "group_norm":
                result = group_norm(given, model["values"][out["value"]]["shape"], attributes)
            elif op == "attention":
                result = attention(given, *(heads_of(view) for view in node["inputs"][:2]), attributes["scale"])
            elif op == "quantized_matmul":
                result = product_w4(given[0], *(array_of(model["values"][view["value"]]) for view in node["inputs"][1:]), attributes)
            elif op == "rope":
                result = rope(given[0], *node["inputs"], attributes)
            elif op == "silu":
                result = emit("Mul", [given[0], emit("Sigmoid", given)])
            elif op == "copy" and out["value"] in past:
                result = emit("Concat", [names[out["value"]], given[0]], axis=out["slice"][0])
            elif op in ("add", "mul", "max"):
                result = emit({"add": "Add", "mul": "Mul", "max": "Max"}[op], given)
            else:
                raise Unsupported(f"the peer has no {op} in a model")
            if "permute" in out:
                result = emit("Transpose", [result], perm=[out["permute"].index(axis) for axis in range(len(out["permute"]))])
            if "reshape" in out:
                result = reshaped(result, model["values"][out["value"]]["shape"])
            names[out["value"]] = result
        outputs = [(names[index], value["shape"]) for index, value in enumerate(model["values"]) if value["role"] == "output"]
        graph = helper.make_graph(nodes, "model", inputs, [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
                                                           for name, shape in outputs], initializers)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
        made.ir_version = 8
        results = [(name, numpy.float32, shape) for name, shape in outputs]
        return self.bound(made, arrays, results, model["threads"])

    # The runtime's threads spin during a run, which is the default. They do not spin after a run,
    # when other contestants are measured.
    def options(self, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.force_spinning_stop", "1")
        return options

    # Returns a function that runs the model on bound values, so that a run copies no data. `outputs`
    # has the name, the dtype and the shape of each output.
    def bound(self, made, arrays, outputs, threads):
        options = self.options(threads)
        session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()}
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        results = [onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, dtype) for _, dtype, shape in outputs]
        for (name, _, _), value in zip(outputs, results):
            binding.bind_ortvalue_output(name, value)

        def call():
            session.run_with_iobinding(binding)
            return results

        call.kept = values
        return call

    def bytes_of(self, value):
        return value.numpy().tobytes()
