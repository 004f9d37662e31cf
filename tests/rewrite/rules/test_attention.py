"""F5 and F7: attention as exporters write it, as one node, and back."""

import numpy as np
import pytest

from tests.rewrite.harness import (
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

MHA, SPLIT_MHA = "fuse-multi-head-attention", "split-multi-head-attention"
STANDARD, SPLIT_STANDARD = "fuse-attention", "split-attention"
MS = {"com.microsoft": 1}
SHAPES = {
    "heads": np.array([0, 0, 2, 4]),
    "flat": np.array([0, 0, 8]),
    "flat2": np.array([-1, 8]),
    "scale": np.array(0.5, "f4"),
    "root": np.array(2.0, "f4"),
    "quarter": np.array([0.7071], "f4"),
}
INPUTS = "float[n,s,8] q, float[n,t,8] k, float[n,t,8] v"
STATIC = "float[n,3,8] q, float[n,5,8] k, float[n,5,8] v"
SPLIT_HEADS = """q4 = Reshape(q, heads)  qh = Transpose<perm=[0,2,1,3]>(q4)
    k4 = Reshape(k, heads)  kt = Transpose<perm=[0,2,3,1]>(k4)
    v4 = Reshape(v, heads)  vh = Transpose<perm=[0,2,1,3]>(v4)"""
MERGE_HEADS = "o = MatMul(p, vh)  ot = Transpose<perm=[0,2,1,3]>(o)  y = Reshape(ot, flat)"
CORE = "m = MatMul(qh, kt)  z = Mul(m, scale)"


def written(body, inputs=INPUTS, outputs="float[n,s,8] y", opset=17, **more):
    constants = {name: value for name, value in SHAPES.items() if f"{name})" in body or f"{name}," in body}
    return graph_of(f"({inputs}) => ({outputs}) {{ {body} }}", opset=opset, **{**constants, **more})


def bert(core=CORE, softmax="p = Softmax<axis=-1>(z)", tail=MERGE_HEADS, heads=SPLIT_HEADS, **options):
    return written(f"{heads}  {core}  {softmax}  {tail}", **options)


def test_attention_of_three_projections():
    graph = bert()
    (candidate,) = candidates(graph, MHA)
    assert not candidate.portable
    assert candidate.summary == "attention with 2 heads of 4 becomes one node"
    (node,) = apply_checked(graph, candidate).nodes
    assert [value.name for value in node.inputs] == ["q", "k", "v"]
    assert (node.attributes.get_int("num_heads"), node.attributes.get_float("scale")) == (2, 0.5)


def test_attention_and_back():
    assert_inverse_restores(bert(), candidates(bert(), MHA)[0])
    masked = bert(
        CORE + "  z2 = Add(z, mask)",
        "p = Softmax<axis=-1>(z2)",
        inputs=STATIC + ", float[1,1,3,5] mask",
        outputs="float[n,3,8] y",
    )
    assert_inverse_restores(masked, candidates(masked, MHA)[0])


@pytest.mark.parametrize(
    "core",
    [
        "m = MatMul(qh, kt)  z = Div(m, root)",
        "qs = Mul(qh, scale)  z = MatMul(qs, kt)",
        "ks = Div(kt, root)  z = MatMul(qh, ks)",
        "qs = Mul(quarter, qh)  ks = Mul(kt, quarter)  z = MatMul(qs, ks)",
        "z = MatMul(qh, kt)",
        "kh = Transpose<perm=[0,1,3,2]>(kt)  z = com.microsoft.FusedMatMul<transB=1, alpha=0.5>(qh, kh)",
    ],
)
def test_scales_in_any_place(core):
    graph = bert(core, domains=MS)
    assert ops(apply_only(graph, MHA)) == {"MultiHeadAttention": 1}


@pytest.mark.parametrize(
    ("mask", "added"),
    [
        ("[1,1,3,5]", {}),
        ("[n,1,3,5]", {}),
        ("[1,2,3,5]", {}),
        ("[3,5]", {"Unsqueeze": 1}),
        ("[2,3,5]", {"Unsqueeze": 1}),
    ],
)
@pytest.mark.parametrize("order", ["Add(z, mask)", "Add(mask, z)"])
def test_masks(mask, added, order):
    inputs = f"{STATIC}, float{mask} mask"
    graph = bert(
        CORE + f"  z2 = {order}", "p = Softmax<axis=-1>(z2)", inputs=inputs, outputs="float[n,3,8] y"
    )
    assert ops(apply_only(graph, MHA)) == {"MultiHeadAttention": 1, **added}


@pytest.mark.parametrize("mask", ["[2,1,1,5]", "[1,1,1,5]", "[5]", "[3,1]", "[1]"])
def test_masks_for_all_queries_are_expanded(mask):
    inputs = f"float[2,3,8] q, float[2,5,8] k, float[2,5,8] v, float{mask} mask"
    graph = bert(
        CORE + "  z2 = Add(z, mask)", "p = Softmax<axis=-1>(z2)", inputs=inputs, outputs="float[2,3,8] y"
    )
    assert ops(apply_only(graph, MHA)) == {"MultiHeadAttention": 1, "Expand": 1}


@pytest.mark.parametrize("mask", ["[n,1,1,5]", "[5]", "[1]"])
def test_padding_masks_of_a_dynamic_number_of_queries(mask):
    """The form of BERT exported with dynamic axes."""
    inputs = f"float[n,s,8] q, float[n,5,8] k, float[n,5,8] v, float{mask} mask"
    graph = bert(CORE + "  z2 = Add(z, mask)", "p = Softmax<axis=-1>(z2)", inputs=inputs)
    expected = {"Shape": 1, "Gather": 1, "Concat": 1, "Expand": 1, "MultiHeadAttention": 1}
    assert ops(apply_only(graph, MHA)) == expected


def test_masks_that_do_not_fit_are_refused():
    def masked(mask):
        return bert(
            CORE + "  z2 = Add(z, mask)", "p = Softmax<axis=-1>(z2)", inputs=f"{INPUTS}, float{mask} mask"
        )

    assert reasons(masked("[s,1]"), MHA) == [
        "mask 'mask' [s, 1] is the same for all t keys, a dynamic number"
    ]
    assert reasons(masked("[a,1,s,t]"), MHA) == [
        "mask 'mask' [a, 1, s, t] does not provably broadcast to the scores [n, 2, s, t]"
    ]
    where = bert(
        CORE + "  z2 = Where(keep, z, low)",
        "p = Softmax<axis=-1>(z2)",
        inputs=INPUTS + ", bool[1,1,s,t] keep",
        low=np.array(-1e9, "f4"),
    )
    assert reasons(where, MHA) == ["the scores are masked by Where, not by an Add"]


def test_keys_by_head_are_handed_over_as_they_are():
    """The form with rotary embeddings: queries and keys are by head already (Llama)."""
    body = f"""qh = Neg(qi)  kh = Neg(ki)  kt = Transpose<perm=[0,1,3,2]>(kh)
        v4 = Reshape(v, heads)  vh = Transpose<perm=[0,2,1,3]>(v4)
        {CORE}  p = Softmax<axis=-1>(z)  {MERGE_HEADS}"""
    graph = written(body, "float[n,2,3,4] qi, float[n,2,5,4] ki, float[n,5,8] v", "float[n,3,8] y")
    result = apply_only(graph, MHA)
    assert ops(result) == {"Neg": 2, "Transpose": 2, "Reshape": 2, "MultiHeadAttention": 1}
    (node,) = [n for n in result.nodes if n.op_type == "MultiHeadAttention"]
    assert [len(value.shape) for value in node.inputs] == [3, 4, 4]


@pytest.mark.parametrize(
    ("tail", "outputs", "expected"),
    [
        ("y = MatMul(p, vh)", "float[n,2,s,4] y", {"Reshape": 1, "Transpose": 1}),
        ("o = MatMul(p, vh)  y = Transpose<perm=[0,2,1,3]>(o)", "float[n,s,2,4] y", {"Reshape": 1}),
        (
            "o = MatMul(p, vh)  ot = Transpose<perm=[0,2,1,3]>(o)  y = Reshape(ot, flat2)",
            "float[r,8] y",
            {"Reshape": 2},
        ),
        (
            "o = MatMul(p, vh)  y = Transpose<perm=[2,0,1,3]>(o)",
            "float[s,n,2,4] y",
            {"Reshape": 1, "Transpose": 2},
        ),
    ],
)
def test_other_destinations(tail, outputs, expected):
    graph = bert(tail=tail, outputs=outputs)
    assert ops(apply_only(graph, MHA)) == {"MultiHeadAttention": 1, **expected}


def test_keys_that_something_else_reads_stay_split():
    graph = bert(tail=MERGE_HEADS + "  r = Relu(kt)", outputs="float[n,s,8] y, float[n,2,4,t] r")
    assert ops(apply_only(graph, MHA)) == {"MultiHeadAttention": 1, "Reshape": 1, "Transpose": 1, "Relu": 1}


def test_values_with_heads_of_another_size():
    heads = SPLIT_HEADS.replace("Reshape(v, heads)", "Reshape(v, wide)")
    graph = bert(
        heads=heads,
        tail=MERGE_HEADS.replace("flat", "flat12"),
        inputs="float[n,s,8] q, float[n,t,8] k, float[n,t,12] v",
        outputs="float[n,s,12] y",
        wide=np.array([0, 0, 2, 6]),
        flat12=np.array([0, 0, 12]),
    )
    (candidate,) = candidates(graph, MHA)
    assert_inverse_restores(graph, candidate)


def test_old_softmax_over_the_last_axis():
    assert ops(apply_only(bert(softmax="p = Softmax<axis=3>(z)", opset=11), MHA)) == {"MultiHeadAttention": 1}
    assert candidates(bert(softmax="p = Softmax(z)", opset=11), MHA) == []  # over axis 1, flattened


def test_near_misses_are_refused():
    shared = bert(tail=MERGE_HEADS + "  r = Relu(p)", outputs="float[n,s,8] y, float[n,2,s,t] r")
    assert reasons(shared, MHA) == ["'p', inside the pattern, is also read by an unnamed Relu"]
    negative = bert(scale=np.array(-0.5, "f4"))
    assert reasons(negative, MHA) == ["the scale -0.5 is not positive"]
    batch = bert(inputs="float[n,s,8] q, float[m,t,8] k, float[m,t,8] v")
    assert reasons(batch, MHA) == ["the batches of 'qh', 'kt' and 'vh' may differ"]


def test_one_key_head_for_all_queries_is_refused():
    body = f"""q4 = Reshape(q, heads)  qh = Transpose<perm=[0,2,1,3]>(q4)  {CORE}  p = Softmax<axis=-1>(z)
        {MERGE_HEADS}"""
    graph = written(body, "float[2,3,8] q, float[2,1,4,5] kt, float[2,1,5,4] vh", "float[2,3,8] y")
    assert reasons(graph, MHA) == ["queries, keys and values have 2, 1 and 1 heads"]


def test_heads_in_the_batch_axis_are_refused():
    graph = written(
        f"{CORE}  p = Softmax<axis=-1>(z)  y = MatMul(p, vh)",
        "float[6,3,4] qh, float[6,4,5] kt, float[6,5,4] vh",
        "float[6,3,4] y",
    )
    assert reasons(graph, MHA) == ["queries 'qh' have rank 3: their heads are in the batch axis"]


def test_softmax_that_is_no_attention_is_left_alone():
    graph = written("z = Relu(q)  p = Softmax<axis=-1>(z)  y = MatMul(p, w)", w=np.ones((8, 8), "f4"))
    assert candidates(graph, MHA) == reasons(graph, MHA) == []


def test_double_is_refused():
    graph = graph_of(
        f"(double[2,2,3,4] qh, double[2,2,4,5] kt, double[2,2,5,4] vh) => (double[2,2,3,4] y) "
        f"{{ {CORE}  p = Softmax<axis=-1>(z)  y = MatMul(p, vh) }}",
        scale=np.array(0.5),
    )
    assert reasons(graph, MHA) == ["'y' has element type double; the rule handles float"]


def operator(inputs="q, k, v", attributes="num_heads=2", arguments=INPUTS):
    return written(
        f"y = com.microsoft.MultiHeadAttention<{attributes}>({inputs})",
        arguments,
        domains=MS,
        bias=np.ones(24, "f4"),
        past=np.ones((1, 2, 2, 4), "f4"),
    )


def test_operator_with_its_default_scale():
    result = apply_only(operator(), SPLIT_MHA)
    assert ops(result) == {"Reshape": 4, "Transpose": 4, "MatMul": 2, "Mul": 1, "Softmax": 1}


@pytest.mark.parametrize(
    ("inputs", "attributes", "arguments", "reason"),
    [
        ("q, k, v, bias", "num_heads=2", INPUTS, "it has a bias"),
        ("q, k, v", "num_heads=2, unidirectional=1", INPUTS, "it is unidirectional"),
        ("q, k, v, , pad", "num_heads=2", INPUTS + ", int32[n] pad", "it has a padding mask"),
        ("q, k, v, , , , past, past", "num_heads=2", INPUTS, "it has past keys"),
        (
            "q, k",
            "num_heads=2",
            "float[n,s,8] q, float[n,t,2,2,4] k",
            "the keys 'k' are packed or of unknown rank",
        ),
    ],
)
def test_operators_that_cannot_be_written_out_are_refused(inputs, attributes, arguments, reason):
    assert reasons(operator(inputs, attributes, arguments), SPLIT_MHA) == [reason]


def test_standard_operator_needs_opset_23():
    assert reasons(bert(), STANDARD) == ["the result needs opset 23, the model imports 17"]


@pytest.mark.parametrize("opset", [23, 24])
def test_standard_operator_without_splitting_heads(opset):
    graph = bert(opset=opset)
    (candidate,) = candidates(graph, STANDARD)
    (node,) = apply_checked(graph, candidate).nodes
    assert (node.op_type, node.attributes.get_int("kv_num_heads")) == ("Attention", 2)
    assert_inverse_restores(graph, candidate)


def test_standard_operator_by_head():
    body = f"""kt = Transpose<perm=[0,1,3,2]>(kh)  {CORE}  z2 = Add(z, mask)  p = Softmax<axis=-1>(z2)
        y = MatMul(p, vh)"""
    graph = written(
        body,
        "float[n,2,3,4] qh, float[n,2,5,4] kh, float[n,2,5,4] vh, float[3,5] mask",
        "float[n,2,3,4] y",
        opset=23,
    )
    (candidate,) = candidates(graph, STANDARD)
    assert ops(apply_checked(graph, candidate)) == {"Attention": 1}
    assert_inverse_restores(graph, candidate)


def test_standard_operator_in_half_precision_and_mixed_layouts():
    body = f"""v4 = Reshape(v, heads)  vh = Transpose<perm=[0,2,1,3]>(v4)
        {CORE}  p = Softmax<axis=-1>(z)  {MERGE_HEADS}"""
    graph = graph_of(
        f"(float16[n,2,3,4] qh, float16[n,2,4,5] kt, float16[n,5,8] v) => (float16[n,3,8] y) {{ {body} }}",
        opset=23,
        heads=SHAPES["heads"],
        flat=SHAPES["flat"],
        scale=np.array(0.5, "f2"),
    )
    result = apply_only(graph, STANDARD)
    assert ops(result) == {"Reshape": 2, "Transpose": 3, "Attention": 1}


@pytest.mark.parametrize(
    ("attributes", "inputs", "reason"),
    [
        ("is_causal=1", "q, k, v", "it is causal"),
        ("softcap=2.0", "q, k, v", "it has a soft cap"),
        ("scale=0.5", "q, k, v, keep", "mask 'keep' is not of the type of the queries"),
        (
            "scale=0.5",
            "q, k, v, wide",
            "mask 'wide' [a, 3, 5] does not provably broadcast to the scores [2, 4, 3, 5]",
        ),
        ("scale=0.5", "q, g, g", "there are 4 query heads and 2 key heads"),
    ],
)
def test_standard_operators_that_cannot_be_written_out_are_refused(attributes, inputs, reason):
    graph = written(
        f"y = Attention<{attributes}>({inputs})",
        "float[2,4,3,4] q, float[2,4,5,4] k, float[2,4,5,4] v, float[2,2,5,4] g, bool[3,5] keep, float[a,3,5] wide",
        "float[2,4,3,4] y",
        opset=23,
    )
    assert reasons(graph, SPLIT_STANDARD) == [reason]


def test_match_inside_a_branch():
    body = f"{CORE}  p = Softmax<axis=-1>(z)  o = MatMul(p, vh)"
    graph = written(
        f"""y = If(c) <
            then_branch = a () => (float[2,2,3,4] o) {{ {body} }},
            else_branch = b () => (float[2,2,3,4] e) {{ e = Relu(qh) }}
        >""",
        "bool c, float[2,2,3,4] qh, float[2,2,4,5] kt, float[2,2,5,4] vh",
        "float[2,2,3,4] y",
    )
    assert ops(apply_only(graph, MHA))["MultiHeadAttention"] == 1
