# SPDX-License-Identifier: Apache-2.0
"""The peer PyTorch, which calls operators eagerly, or replays them as a graph on a GPU."""
import torch

from unsupported import Unsupported


class Torch:
    # `graph` requires a GPU.
    def __init__(self, gpu, graph):
        self.name, self.version, self.graph = "PyTorch graph" if graph else "PyTorch", torch.__version__, graph
        self.device = "cuda" if gpu else "cpu"
        if gpu:
            if not torch.cuda.is_available():
                raise Unsupported(f"PyTorch {torch.__version__} finds no GPU")
            self.version += f", {torch.cuda.get_device_name()}"
            # Like the device, PyTorch must compute products of f32 without TF32.
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        self.dtypes = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8,
                       "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}
        torch.set_grad_enabled(False)

    def tensor(self, dtype, shape, path):
        if dtype not in self.dtypes:
            raise Unsupported("it has no such dtype")
        data = self.files[path]
        flat = torch.frombuffer(data, dtype=self.dtypes[dtype]) if data else torch.empty(0, dtype=self.dtypes[dtype])
        return flat.reshape(shape).clone().to(self.device)

    # Waits until the GPU has completed all calls. On a processor, calls return after their work has completed.
    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    # Returns a function that replays a call as a graph.
    def recorded(self, call):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # lets libraries initialise themselves before the capture
            call()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = call()

        def replay():
            graph.replay()
            return results

        return replay

    def prepare(self, case):
        call = self.eager(case)
        return self.recorded(call) if self.graph else call

    def eager(self, case):
        op, attributes = case["op"], case["attributes"]
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
            # Returns only the values. The indices cannot be compared, because torch returns them as i64.
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

    def prepare_model(self, model):
        call = self.eager_model(model)
        return self.recorded(call) if self.graph else call

    # Returns a function that runs the nodes on a list of tensors. The nodes write caches in place,
    # as eager programs do.
    def eager_model(self, model):
        functional = torch.nn.functional
        torch.set_num_threads(model["threads"])
        values = [self.tensor(value["dtype"], value["shape"], value["file"]) if "file" in value else torch.empty(value["shape"], device=self.device)
                  for value in model["values"]]
        weights = {index: self.dequantized(*(values[view["value"]] for view in node["inputs"][1:]), node["attributes"])
                   for index, node in enumerate(model["nodes"]) if node["op"] == "quantized_matmul"}
        tables = {index: self.rope_tables(node, values) for index, node in enumerate(model["nodes"]) if node["op"] == "rope"}

        numbers = {view["number"]: torch.tensor(view["number"], device=self.device) for node in model["nodes"] for view in node["inputs"] if "number" in view}

        def seen(view):
            if "number" in view:
                return numbers[view["number"]]
            tensor = values[view["value"]]
            if "reshape" in view:
                tensor = tensor.reshape(view["reshape"])
            if "slice" in view:
                axis, begin, end = view["slice"]
                tensor = tensor.narrow(axis, begin, end - begin)
            if "permute" in view:
                tensor = tensor.permute(view["permute"])
            return tensor.expand(view["broadcast"]) if "broadcast" in view else tensor

        def store(view, result):
            if "slice" in view:
                seen(view).copy_(result)
                return
            if "permute" in view:
                result = result.permute([view["permute"].index(axis) for axis in range(result.dim())])
            values[view["value"]] = result.reshape(model["values"][view["value"]]["shape"])

        def computed(index, node):
            op, attributes, inputs = node["op"], node["attributes"], [seen(view) for view in node["inputs"]]
            if op == "linear":
                return activated(functional.linear(*inputs), int(attributes["activation"]))
            if op == "conv":
                pad, stride = ([int(value) for value in attributes[name][:2]] for name in ("pad_begin", "stride"))
                return activated(functional.conv2d(*inputs, stride, pad), int(attributes["activation"]))
            if op == "layer_norm":
                return functional.layer_norm(inputs[0], inputs[0].shape[-1:], *inputs[1:], attributes["epsilon"])
            if op == "rms_norm":
                return functional.rms_norm(inputs[0], inputs[0].shape[-1:], inputs[1], attributes["epsilon"])
            if op == "group_norm":
                return functional.group_norm(inputs[0], int(attributes["groups"]), *inputs[1:], attributes["epsilon"])
            if op == "attention":
                return functional.scaled_dot_product_attention(*inputs, scale=attributes["scale"],
                                                               enable_gqa=inputs[0].shape[1] != inputs[1].shape[1])
            if op == "quantized_matmul":
                return functional.linear(inputs[0], weights[index])
            if op == "rope":
                cosine, sine = tables[index]
                first, second = inputs[0].chunk(2, -1)
                return inputs[0] * cosine + torch.cat((-second, first), -1) * sine
            return {"add": torch.add, "mul": torch.mul, "max": torch.maximum, "silu": functional.silu, "copy": lambda x: x}[op](*inputs)

        def activated(x, activation):
            return {0: lambda x: x, 1: functional.relu, 2: functional.gelu}[activation](x)

        results = [index for index, value in enumerate(model["values"]) if value["role"] == "output"]

        def call():
            for index, node in enumerate(model["nodes"]):
                store(node["outputs"][0], computed(index, node))
            return [values[index] for index in results]

        return call

    # Returns the f32 weights [N, K] of a node. PyTorch's product of f32 rows and weights of 4 bits uses no vector
    # instructions, so the product with f32 weights is faster.
    def dequantized(self, weight, scale, zero_point, attributes):
        if int(attributes["weight_bits"]) != 4:
            raise Unsupported("the peer multiplies weights of 4 bits")
        split = torch.stack((weight & 15, weight >> 4), -1).flatten(-2).to(torch.float32)
        return (split - zero_point) * scale.repeat_interleave(int(attributes["block"]), -1)

    # Returns the cosines and the sines with the shape [L, D] of a node's operand [1, H, L, D].
    def rope_tables(self, node, values):
        view, attributes = node["inputs"][0], node["attributes"]
        if int(attributes["interleaved"]) or int(attributes["rotary_extent"]):
            raise Unsupported("the peer rotates whole rows by pairs of halves")
        extent = view["reshape"][-1]
        frequency = attributes["base"] ** (-torch.arange(0, extent, 2, dtype=torch.float64, device=self.device) / extent)
        angle = values[node["inputs"][1]["value"]].to(torch.float64)[:, None] * frequency
        angle = torch.cat((angle, angle), -1)
        return angle.cos().float(), angle.sin().float()

    def bytes_of(self, tensor):
        return tensor.reshape(-1).contiguous().view(torch.uint8).cpu().numpy().tobytes()
