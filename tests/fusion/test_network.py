"""From graphs to fusion networks: what is merged, folded, counted, and how operators are classed."""

from __future__ import annotations

import pytest

from explorer.errors import InputError
from explorer.fusion import FusionNetwork, Mode, OpClass, fusion_network
from explorer.graph import load, sample_names
from tests.fusion.networks import graph_of, network_of, sample
from tests.models import CASES, model


def classes(network: FusionNetwork) -> dict[str, OpClass]:
    return {node.id: node.op_class for node in network.nodes}


class TestMerging:
    def test_batch_normalization_becomes_one_bias_of_its_convolution(self) -> None:
        network = network_of(
            """(float[1,4,8,8] x) => (float[1,6,8,8] z) {
                y = Conv (x, w, b)
                z = BatchNormalization(y, s, b, m, v)
            }""",
            w=(6, 4, 1, 1),
            **dict.fromkeys("sbmv", (6,)),
        )
        (node,) = network.nodes
        assert (node.covers, node.weight_elements) == (("n0", "n1"), 24 + 6)
        assert network.tensors[node.writes[0]].name == "z"

    def test_it_stays_where_the_convolution_has_another_reader(self) -> None:
        network = network_of(
            """(float[1,4,8,8] x) => (float[1,6,8,8] z, float[1,6,8,8] r) {
                y = Conv (x, w)
                z = BatchNormalization(y, s, b, m, v)
                r = Relu(y)
            }""",
            w=(6, 4, 1, 1),
            **dict.fromkeys("sbmv", (6,)),
        )
        assert [node.op_type for node in network.nodes] == ["Conv", "BatchNormalization", "Relu"]
        assert network.nodes[1].weight_elements == 12  # a scale and a shift per channel

    def test_convolutions_that_share_a_weight_share_it_no_more_after_folding(self) -> None:
        network = fusion_network(load(CASES / "conv_shared_weight_two_bn.onnx"))
        assert network.shared_constants == ()
        assert [node.covers for node in network.nodes] == [("n0", "n1"), ("n2", "n3")]

    def test_data_less_nodes_belong_to_their_producer_or_else_to_their_reader(self) -> None:
        network = network_of(
            """(float[1,4,8] x) => (float[1,32] z) {
                i = Identity(x)
                y = Relu(i)
                d = Dropout(y)
                z = Flatten(d)
            }"""
        )
        (node,) = network.nodes
        assert node.covers == ("n1", "n0", "n2", "n3")
        assert [t.name for t in network.tensors] == ["x", "y"]
        assert network.tensors[1].is_output

    def test_shape_arithmetic_is_an_attribute_even_where_shape_inference_gives_up(self) -> None:
        network = network_of(
            """(float[1,8,6,6] x) => (float[1,4,6,6] z)
            <int64[1] one = {1}, int64[1] zero = {0}, int64[1] two = {2}> {
                s = Shape(x)
                c = Gather(s, one)
                h = Div(c, two)
                y = Slice(x, zero, h, one)
                z = Relu(y)
            }"""
        )
        assert [node.op_type for node in network.nodes] == ["Slice", "Relu"]
        assert network.nodes[0].covers == ("n3", "n0", "n1", "n2")
        assert network.tensors[network.nodes[0].writes[0]].dims == (1, 4, 6, 6)

    @pytest.mark.parametrize("name", sample_names())
    def test_every_node_of_every_sample_has_its_place_once(self, name: str) -> None:
        network = sample(name)
        placed = [i for node in network.nodes for i in node.covers] + list(network.unplaced)
        assert sorted(placed) == sorted(f"n{i}" for i in range(len(placed)))
        assert not [n for n in network.nodes if n.op_class is OpClass.SOLO]
        assert all(edge.source < edge.target for edge in network.edges)


class TestDimensions:
    TEXT = "(float[N,4] x) => (float[N,4] y) { y = Relu(x) }"

    def test_an_unknown_one_is_named_with_its_tensor_and_the_way_out(self) -> None:
        with pytest.raises(InputError) as error:
            network_of(self.TEXT)
        assert str(error.value) == (
            "Dimension 0 ('N') of tensor 'x' of 'tested' is unknown; fix it, for example dims={'N': 1}."
        )

    @pytest.mark.parametrize("key", ["N", "x:0"])
    def test_it_can_be_fixed_by_name_or_by_place(self, key: str) -> None:
        network = network_of(self.TEXT, dims={key: 3})
        assert [t.dims for t in network.tensors] == [(3, 4), (3, 4)]

    def test_the_graph_itself_is_not_changed(self) -> None:
        graph = graph_of(self.TEXT)
        fusion_network(graph, dims={"N": 3})
        with pytest.raises(InputError, match="'N'"):
            fusion_network(graph)

    def test_the_shape_of_a_custom_operators_result_can_be_given(self) -> None:
        graph = load(CASES / "unknown_custom_op.onnx")
        with pytest.raises(InputError, match=r"The shape of tensor 'f' .* dims=\{'f': \(1, 8, 8\)\}"):
            fusion_network(graph)
        network = fusion_network(graph, dims={"f": (1, 4, 4, 4)})
        assert classes(network)["n2"] is OpClass.SOLO
        assert [n.op_type for n in network.nodes] == ["Conv", "vendor.ops::FancyGate", "Relu"]

    @pytest.mark.parametrize(
        ("dims", "words"),
        [
            ({"M": 1}, "'tested' has no unknown dimension 'M'"),
            ({"N": -1}, "Dimension 'N' cannot be -1"),
            ({"N": True}, "Dimension 'N' cannot be True"),
            ({"x": ()}, r"Dimension 'x' cannot be \(\)"),
        ],
    )
    def test_wrong_entries_are_refused(self, dims: dict[str, int], words: str) -> None:
        with pytest.raises(InputError, match=words):
            network_of(self.TEXT, dims=dims)

    def test_a_dimension_decided_by_the_data_is_named(self) -> None:
        graph = load(CASES / "loop_body_captures_and_passthrough.onnx")
        with pytest.raises(InputError, match=r"Dimension 0 of tensor 'trace' .* dims=\{'trace:0': 1\}"):
            fusion_network(graph)
        network = fusion_network(graph, dims={"trace:0": 5})
        (loop,) = [node for node in network.nodes if node.op_type == "Loop"]
        assert loop.op_class is OpClass.SOLO
        assert len(loop.covers) > 1

    @pytest.mark.parametrize("size", [0, 3, 8])
    def test_elements_have_one_two_or_four_bytes(self, size: int) -> None:
        with pytest.raises(
            InputError, match=f"An element of {size} bytes is not supported; choose 1, 2 or 4"
        ):
            fusion_network(graph_of("(float[1] x) => (float[1] y) { y = Relu(x) }"), element_bytes=size)


class TestClasses:
    def test_of_a_convolutional_network(self) -> None:
        network = network_of(
            """(float[1,4,8,8] x) => (float[1,2] z)
            <int64[8] pads = {0,0,2,2,0,0,2,2}> {
                p = Pad(x, pads)
                a = Conv <auto_pad="SAME_UPPER", strides=[2,2]> (p, w)
                b = Conv (a, u)
                c = Add(a, b)
                g = GlobalAveragePool(c)
                f = Flatten(g)
                z = Gemm(f, v)
            }""",
            w=(4, 4, 3, 3),
            u=(4, 4, 1, 1),
            v=(4, 2),
        )
        pad, windowed, pointwise, join, average, gemm = network.nodes
        assert (pad.op_class, pad.pad_rows) == (OpClass.ELEMENTWISE, 2)
        assert (windowed.op_class, windowed.kernel_rows, windowed.stride_rows) == (OpClass.WINDOWED, 3, 2.0)
        assert windowed.window is not None
        assert windowed.window.pads == (0, 0, 1, 1)  # 12 rows, stride 2: 6 results, 1 row short
        assert pointwise.op_class is OpClass.ELEMENTWISE
        assert join.op_class is OpClass.JOIN
        assert (average.op_class, average.reads[0].mode) == (OpClass.FULL, Mode.WHOLE)
        assert gemm.op_class is OpClass.ELEMENTWISE  # one row is all there is

    def test_a_classifier_behind_a_flattened_map_needs_it_whole(self) -> None:
        gemm = next(n for n in sample("vgg16").nodes if n.op_type == "Gemm")
        assert (gemm.op_class, gemm.reads[0].mode) == (OpClass.FULL, Mode.WHOLE)

    def test_of_attention(self) -> None:
        network = network_of(
            """(float[1,16,32] x) => (float[1,16,32] z)
            <int64[4] heads = {1,16,4,8}, int64[3] flat = {1,16,32}> {
                q = MatMul(x, wq)
                k = MatMul(x, wk)
                v = MatMul(x, wv)
                q4 = Reshape(q, heads)
                k4 = Reshape(k, heads)
                v4 = Reshape(v, heads)
                qt = Transpose <perm=[0,2,1,3]> (q4)
                kt = Transpose <perm=[0,2,3,1]> (k4)
                vt = Transpose <perm=[0,2,1,3]> (v4)
                s = MatMul(qt, kt)
                p = Softmax <axis=-1> (s)
                o = MatMul(p, vt)
                ot = Transpose <perm=[0,2,1,3]> (o)
                of = Reshape(ot, flat)
                r = Add(of, x)
                z = LayerNormalization(r, g, b)
            }""",
            **dict.fromkeys(["wq", "wk", "wv"], (32, 32)),
            g=(32,),
            b=(32,),
        )
        found = {node.id: node for node in network.nodes}
        scores, mixed = found["n9"], found["n11"]
        assert [r.mode for r in scores.reads] == [Mode.STREAM, Mode.HELD]
        assert [r.mode for r in mixed.reads] == [Mode.STREAM, Mode.HELD]
        others = {i: node.op_class for i, node in found.items() if i not in {"n9", "n11", "n14"}}
        assert set(others.values()) == {OpClass.ELEMENTWISE}
        assert found["n14"].op_class is OpClass.JOIN
        rows = {network.tensors[node.writes[0]].rows for node in network.nodes}
        assert rows == {16}

    def test_one_sample_of_a_batch_is_on_chip_but_all_heads_are(self) -> None:
        network = network_of(
            """(float[2,4,8,8] x, float[3,8,16] h) => (float[2,4,8,8] y, float[3,8,16] g) {
                y = Relu(x)
                g = Relu(h)
            }"""
        )
        assert {t.name: (t.elements, t.rows, t.row_elements) for t in network.tensors} == {
            "x": (512, 8, 32),
            "y": (512, 8, 32),
            "h": (384, 8, 48),
            "g": (384, 8, 48),
        }

    def test_normalisation_over_the_rows_needs_them_all(self) -> None:
        text = "(float[1,16,32] x) => (float[1,16,32] y) {{ y = Softmax <axis={}> (x) }}"
        assert network_of(text.format(2)).nodes[0].op_class is OpClass.ELEMENTWISE
        assert network_of(text.format(1)).nodes[0].op_class is OpClass.FULL

    def test_a_channel_shuffle_keeps_the_rows(self) -> None:
        shuffles = [n for n in sample("shufflenet_v2_x1_0").nodes if n.op_type == "Transpose"]
        assert len(shuffles) == 16
        assert {node.op_class for node in shuffles} == {OpClass.ELEMENTWISE}

    def test_rows_that_a_reshape_tears_apart_have_to_be_there_at_once(self) -> None:
        network = network_of(
            """(float[1,4,8,8] x) => (float[1,8,32] z)
            <int64[3] mixed = {1,8,32}> {
                y = Relu(x)
                r = Reshape(y, mixed)
                z = Sigmoid(r)
            }"""
        )
        assert network.nodes[1].reads[0].mode is Mode.WHOLE

    def test_upsampling_sees_two_rows_and_makes_many(self) -> None:
        network = network_of(
            """(float[1,4,8,8] x) => (float[1,4,16,16] y)
            <float[4] scales = {1.0, 1.0, 2.0, 2.0}> {
                y = Resize <mode="linear"> (x, "", scales)
            }""".replace('""', "")
        )
        (node,) = network.nodes
        assert (node.kernel_rows, node.stride_rows) == (2, 0.5)

    def test_a_table_is_read_as_far_as_it_is_looked_up_and_a_position_table_row_by_row(self) -> None:
        network = network_of(
            """(int64[1,16] ids) => (float[1,16,8] y) {
                e = Gather(table, ids)
                y = Add(e, places)
            }""",
            table=(1000, 8),
            places=(16, 8),
        )
        gather, add = network.nodes
        assert (gather.weight_elements, gather.streamed_elements) == (0, 16 * 8)
        assert (add.weight_elements, add.streamed_elements) == (0, 16 * 8)


class TestOddGraphs:
    @pytest.mark.parametrize(
        "name",
        sorted(
            path.stem
            for path in CASES.glob("*.onnx")
            if path.stem
            not in {"unknown_custom_op", "loop_body_captures_and_passthrough", "shape_with_start_end"}
        ),
    )
    def test_every_case_becomes_a_network(self, name: str) -> None:
        graph = load(CASES / f"{name}.onnx")
        network = fusion_network(graph)
        placed = {i for node in network.nodes for i in node.covers} | set(network.unplaced)
        assert len(placed) == len(graph.nodes)

    def test_control_flow_reads_what_its_bodies_capture(self) -> None:
        network = fusion_network(load(CASES / "if_branches_capture_outer.onnx"))
        (node,) = network.nodes
        assert node.op_class is OpClass.SOLO
        assert set(node.covers) == {"n0", "n1", "n2", "n3"}
        assert {network.tensors[r.tensor].name for r in node.reads} == {"x", "flag"}

    def test_names_can_be_anything(self) -> None:
        network = fusion_network(load(CASES / "odd_names.onnx"))
        assert "in/put:0" in {t.name for t in network.tensors}

    def test_a_tensor_of_no_size_costs_nothing(self) -> None:
        network = fusion_network(load(CASES / "zero_size_tensors.onnx"))
        assert min(t.elements for t in network.tensors) == 0

    def test_an_id_that_is_not_there_is_refused(self) -> None:
        with pytest.raises(InputError, match="Node 'n99' of 'resnet18' does not exist"):
            sample("resnet18").index_of("n99")

    def test_overridable_weights_are_weights(self) -> None:
        network = fusion_network(load(CASES / "initializer_is_overridable_input.onnx"))
        assert network.nodes[0].weight_elements == 16

    def test_the_digest_tells_networks_apart_and_repeats(self) -> None:
        text = "(float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Conv (x, w) }"
        one, again = network_of(text, w=(4, 4, 1, 1)), network_of(text, w=(4, 4, 1, 1))
        assert one.digest == again.digest
        assert one.digest != network_of(text, w=(4, 4, 1, 1), element_bytes=4).digest

    def test_a_model_given_as_bytes_works_too(self) -> None:
        proto = model("(float[1,8] x) => (float[1,8] y) { y = Relu(x) }")
        assert len(fusion_network(load(proto.SerializeToString())).nodes) == 1
