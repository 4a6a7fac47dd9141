"""The workloads as ONNX graphs, for onnxruntime and OpenVINO: the standard's own ops, and each runtime's attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads.catalog import Workload, arrays, resnet_blocks, workloads
from topos_core.run.bench.contender import Runner


class Graph:
    """Collects the nodes of one model."""

    def __init__(self, weights: dict[str, np.ndarray], runtime: str) -> None:
        from onnx import helper, numpy_helper

        self.helper, self.numpy = helper, numpy_helper
        self.runtime = runtime
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.count = 0
        self.w = {name: self.constant(each) for name, each in weights.items()}

    def constant(self, value: Any) -> str:
        self.count += 1
        name = f"constant{self.count}"
        self.initializers.append(self.numpy.from_array(np.asarray(value), name))
        return name

    def number(self, value: float) -> str:
        return self.constant(np.float32(value))

    def op(self, kind: str, *operands: str, domain: str = "", **attributes: Any) -> str:
        self.count += 1
        result = f"value{self.count}"
        self.nodes.append(self.helper.make_node(kind, list(operands), [result], domain=domain, **attributes))
        return result

    def model(self, inputs: Sequence[np.ndarray], results: Sequence[str]) -> bytes:
        from onnx import TensorProto

        given = [
            self.helper.make_tensor_value_info(f"input{at}", TensorProto.FLOAT, list(each.shape))
            for at, each in enumerate(inputs)
        ]
        made = [self.helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results]
        graph = self.helper.make_graph(self.nodes, "workload", given, made, self.initializers)
        versions = [self.helper.make_opsetid("", 21), self.helper.make_opsetid("com.microsoft", 1)]
        model = self.helper.make_model(graph, opset_imports=versions)
        model.ir_version = 10
        return bytes(model.SerializeToString())


def onnxruntime(folder: Path, threads: int, workload: str, bound: bool = False) -> Runner:
    """`bound`: results go into the same buffers every time, as an application may have it."""
    import onnxruntime as ort

    chosen = workloads()[workload]
    inputs, unpack = _inputs(chosen, "onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    ort.set_default_logger_severity(3)
    session = ort.InferenceSession(model(chosen, "onnxruntime"), options, providers=["CPUExecutionProvider"])
    feeds = {f"input{at}": each for at, each in enumerate(inputs)}
    if not bound:
        return Runner(lambda: session.run(None, feeds), lambda given: [unpack(each) for each in given])
    binding = session.io_binding()
    for name, each in feeds.items():
        binding.bind_cpu_input(name, each)
    for output, array in zip(session.get_outputs(), session.run(None, feeds), strict=True):
        binding.bind_ortvalue_output(output.name, ort.OrtValue.ortvalue_from_numpy(array))
    return Runner(
        lambda: session.run_with_iobinding(binding),
        lambda given: [unpack(each) for each in binding.copy_outputs_to_cpu()],
    )


def openvino(folder: Path, threads: int, workload: str) -> Runner:
    """In f32: its default may choose bf16. Results stay in the request's own buffers."""
    import openvino as ov
    from openvino import opset13

    chosen = workloads()[workload]
    inputs, _ = _inputs(chosen, "openvino")
    core = ov.Core()
    if chosen.kind == "attention":
        given = [opset13.parameter(list(each.shape), np.float32) for each in inputs]
        program = ov.Model([opset13.scaled_dot_product_attention(*given, causal=chosen.options["causal"])], given)
    else:
        program = core.read_model(model(chosen, "openvino"))
    settings = {
        "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
    }  # fmt: skip
    request = core.compile_model(program, "CPU", settings).create_infer_request()
    return Runner(
        lambda: request.infer(inputs, share_inputs=True, share_outputs=True),
        lambda results: [np.array(results[port]) for port in request.model_outputs],
    )


def model(workload: Workload, runtime: str) -> bytes:
    """Gives the serialised model of a workload for a runtime."""
    inputs, weights = arrays(workload)
    turned, _ = _inputs(workload, runtime)
    graph = Graph(weights, runtime)
    make: Callable[..., Any] = globals()[workload.kind]
    results = make(graph, workload.options, *(f"input{at}" for at in range(len(inputs))))
    return graph.model(turned, results if isinstance(results, tuple) else (results,))


def _inputs(workload: Workload, runtime: str) -> tuple[list[np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """Gives a runtime's inputs, and what turns a result of its into the program's: onnxruntime joins heads."""
    inputs, _ = arrays(workload)
    if workload.kind != "attention" or runtime != "onnxruntime":
        return inputs, lambda result: result
    batch, heads, length, width = inputs[0].shape
    joined = [np.ascontiguousarray(each.transpose(0, 2, 1, 3)).reshape(batch, length, heads * width) for each in inputs]
    return joined, lambda result: result.reshape(batch, length, heads, width).transpose(0, 2, 1, 3)


def chain(g: Graph, o: Any, x: str) -> str:
    y = g.op("Tanh", g.op("Add", g.op("Mul", x, g.number(1.3)), g.number(0.2)))
    y = g.op("Sigmoid", g.op("Add", g.op("Mul", y, x), g.number(0.1)))
    return g.op("Sub", g.op("Max", g.op("Mul", y, x), g.number(-0.2)), g.number(0.05))


def gelu(g: Graph, o: Any, x: str) -> str:
    return g.op("Gelu", x, approximate=o["approximate"])


def softmax(g: Graph, o: Any, x: str) -> str:
    return g.op("Softmax", x, axis=-1)


def layer_norm(g: Graph, o: Any, x: str) -> str:
    return g.op("LayerNormalization", x, g.w["scale"], g.w["shift"], axis=-1)


def mse(g: Graph, o: Any, x: str, target: str) -> str:
    difference = g.op("Sub", x, target)
    return g.op("ReduceMean", g.op("Mul", difference, difference), keepdims=0)


def linear_gelu(g: Graph, o: Any, x: str) -> str:
    return g.op("Gelu", g.op("Add", g.op("MatMul", x, g.w["weight"]), g.w["bias"]))


def conv_bn_relu(g: Graph, o: Any, x: str) -> str:
    top, bottom, left, right = o["pads"]
    return g.op("Relu", _conv_bn(g, x, "", o["size"], o["stride"], (top, left, bottom, right), o["dilation"]))


def depthwise_pointwise(g: Graph, o: Any, x: str) -> str:
    deep = g.op("Conv", x, g.w["deep"], g.w["deep_bias"], group=o["channels"], kernel_shape=[3, 3], pads=[1] * 4)
    point = g.op("Conv", g.op("Relu", deep), g.w["point"], g.w["point_bias"], kernel_shape=[1, 1])
    return g.op("Relu", point)


def pool(g: Graph, o: Any, x: str) -> str:
    settings: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
    return g.op("AveragePool", x, count_include_pad=1, **settings) if o["mean"] else g.op("MaxPool", x, **settings)


def attention(g: Graph, o: Any, q: str, k: str, v: str) -> str:
    return g.op(
        "MultiHeadAttention", q, k, v, domain="com.microsoft", num_heads=o["heads"], unidirectional=int(o["causal"])
    )


def batch_norm(g: Graph, o: Any, x: str) -> tuple[str, ...]:
    axes = g.constant(np.array([0, *range(2, len(o["shape"]))], np.int64))
    shape = g.constant(np.array([1, -1, *(1,) * (len(o["shape"]) - 2)], np.int64))
    mean = g.op("ReduceMean", x, axes)
    centred = g.op("Sub", x, mean)
    variance = g.op("ReduceMean", g.op("Mul", centred, centred), axes)
    scale, shift = (g.op("Reshape", g.w[name], shape) for name in ("scale", "shift"))
    factor = g.op("Div", scale, g.op("Sqrt", g.op("Add", variance, g.number(1e-5))))
    return g.op("Add", g.op("Mul", centred, factor), shift), mean, variance


def resnet(g: Graph, o: Any, x: str) -> str:
    x = g.op("Relu", _conv_bn(g, x, "stem.", 7, 2, (3, 3, 3, 3)))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for name, _, _, stride in resnet_blocks():
        y = g.op("Relu", _conv_bn(g, x, f"{name}.first.", 3, stride, (1, 1, 1, 1)))
        y = _conv_bn(g, y, f"{name}.second.", 3, 1, (1, 1, 1, 1))
        if stride == 2:
            x = _conv_bn(g, x, f"{name}.shortcut.", 1, 2, (0, 0, 0, 0))
        x = g.op("Relu", g.op("Add", x, y))
    return g.op("Gemm", g.op("Flatten", g.op("GlobalAveragePool", x)), g.w["head.weight"], g.w["head.bias"])


def bert(g: Graph, o: Any, x: str) -> str:
    def linear(y: str, name: str) -> str:
        return g.op("Add", g.op("MatMul", y, g.w[f"{name}.weight"]), g.w[f"{name}.bias"])

    def heads(name: str, order: Sequence[int]) -> str:
        split = g.op("Reshape", linear(x, name), g.constant(np.array([1, 128, 12, 64], np.int64)))
        return g.op("Transpose", split, perm=list(order))

    if g.runtime == "onnxruntime":
        names = ("query", "key", "value")
        seen = g.op("MultiHeadAttention", *(linear(x, n) for n in names), domain="com.microsoft", num_heads=12)
    else:
        scores = g.op("MatMul", heads("query", (0, 2, 1, 3)), heads("key", (0, 2, 3, 1)))
        weights = g.op("Softmax", g.op("Mul", scores, g.number(0.125)), axis=-1)
        joined = g.op("Transpose", g.op("MatMul", weights, heads("value", (0, 2, 1, 3))), perm=[0, 2, 1, 3])
        seen = g.op("Reshape", joined, g.constant(np.array([1, 128, 768], np.int64)))
    y = _layer_norm(g, g.op("Add", x, linear(seen, "out")), "norm1")
    return _layer_norm(g, g.op("Add", y, linear(g.op("Gelu", linear(y, "up")), "down")), "norm2")


def _layer_norm(g: Graph, x: str, name: str) -> str:
    return g.op("LayerNormalization", x, g.w[f"{name}.scale"], g.w[f"{name}.shift"], axis=-1)


def _conv_bn(g: Graph, x: str, prefix: str, size: int, stride: int, pads: Sequence[int], dilation: int = 1) -> str:
    y = g.op(
        "Conv", x, g.w[f"{prefix}weight"], kernel_shape=[size] * 2, strides=[stride] * 2, pads=list(pads),
        dilations=[dilation] * 2,
    )  # fmt: skip
    names = ("scale", "shift", "mean", "variance")
    return g.op("BatchNormalization", y, *(g.w[f"{prefix}{name}"] for name in names), epsilon=1e-5)
