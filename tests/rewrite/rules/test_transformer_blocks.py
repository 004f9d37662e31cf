"""Transformer blocks as different exporters write them: fused step by step, and rewritten at random."""

from __future__ import annotations

import random

import numpy as np
import pytest

from explorer.errors import RewriteError
from explorer.rewrite import NumericClass, all_rules, apply, check_equivalence, find_candidates, rescan, scan
from tests.rewrite.harness import apply_all, graph_of, ops, run

RNG = np.random.default_rng(18)
WIDTH, HEADS, SIZE, LENGTH = 8, 2, 4, 5


def weights(*names, rows=WIDTH, columns=WIDTH):
    return {name: (RNG.standard_normal((rows, columns)) / 3).astype("f4") for name in names}


def vectors(*names, size=WIDTH):
    return {name: RNG.uniform(0.5, 1.5, size).astype("f4") for name in names}


NUMBERS = {
    "two": 2.0, "half": 0.5, "one": 1.0, "root2": np.sqrt(2), "three": 3.0, "cube": 0.044715,
    "tanh_scale": np.sqrt(2 / np.pi), "eps": 1e-5, "root_size": np.sqrt(SIZE), "scale": SIZE**-0.5,
}  # fmt: skip
SHAPES = {
    "split": np.array([0, 0, HEADS, SIZE]),
    "merge": np.array([0, 0, WIDTH]),
    "flat": np.array([-1, WIDTH]),
    "deep": np.array([2, LENGTH, WIDTH]),
    "last": np.array([-1]),
    "zero": np.array([0]),
    "middle": np.array([SIZE // 2]),
    "end": np.array([SIZE]),
    "axis3": np.array([3]),
}
ANGLES = np.tile(RNG.uniform(-2, 2, (LENGTH, SIZE // 2)), (1, 2))
TABLES = {"cos": np.cos(ANGLES).astype("f4"), "sin": np.sin(ANGLES).astype("f4")}

TORCHSCRIPT = """
    mq = MatMul(x, wq)  q = Add(mq, bq)  q4 = Reshape(q, split)  qh = Transpose<perm=[0,2,1,3]>(q4)
    mk = MatMul(x, wk)  k = Add(mk, bk)  k4 = Reshape(k, split)  kt = Transpose<perm=[0,2,3,1]>(k4)
    mv = MatMul(x, wv)  v = Add(mv, bv)  v4 = Reshape(v, split)  vh = Transpose<perm=[0,2,1,3]>(v4)
    qk = MatMul(qh, kt)  z = Div(qk, root_size)  zm = Add(z, mask)  p = Softmax<axis=-1>(zm)
    o = MatMul(p, vh)  ot = Transpose<perm=[0,2,1,3]>(o)  o3 = Reshape(ot, merge)
    mo = MatMul(o3, wo)  a = Add(mo, bo)  s = Add(a, x)
    m = ReduceMean<axes=[-1]>(s)  d = Sub(s, m)  sq = Pow(d, two)  var = ReduceMean<axes=[-1]>(sq)
    ve = Add(var, eps)  sd = Sqrt(ve)  n = Div(d, sd)  ng = Mul(n, gamma)  h = Add(ng, beta)
    f = MatMul(h, wf)  fb = Add(f, bf)  e1 = Div(fb, root2)  e2 = Erf(e1)  e3 = Add(e2, one)
    e4 = Mul(fb, e3)  g = Mul(e4, half)  u = MatMul(g, wu)  ub = Add(u, bu)  y = Add(ub, h)
"""
KERAS = """
    m = ReduceMean<axes=[2]>(x)  d = Sub(x, m)  sq = Mul(d, d)  var = ReduceMean<axes=[2]>(sq)
    ve = Add(var, eps)  sd = Sqrt(ve)  r = Reciprocal(sd)  f = Mul(r, gamma)  xf = Mul(x, f)  mf = Mul(m, f)
    b = Sub(beta, mf)  h = Add(xf, b)
    q = Einsum<equation="abc,cde->abde">(h, wq)  k = Einsum<equation="abc,cde->abde">(h, wk)
    v = Einsum<equation="abc,cde->abde">(h, wv)  qs = Mul(q, scale)
    z = Einsum<equation="aecd,abcd->acbe">(k, qs)  p = Softmax<axis=3>(z)
    o = Einsum<equation="acbe,aecd->abcd">(p, v)  t = Einsum<equation="abcd,cde->abe">(o, wo)  s = Add(t, x)
    f1 = MatMul(s, wf)  g1 = Sigmoid(f1)  g2 = Mul(f1, g1)  y = MatMul(g2, wu)
"""
LLAMA = """
    sq = Pow(x, two)  ms = ReduceMean(sq, last)  ve = Add(ms, eps)  sd = Sqrt(ve)  r = Reciprocal(sd)
    n = Mul(x, r)  h = Mul(gamma, n)
    mq = MatMul(h, wq)  q4 = Reshape(mq, split)  qh = Transpose<perm=[0,2,1,3]>(q4)
    mk = MatMul(h, wk)  k4 = Reshape(mk, split)  kh = Transpose<perm=[0,2,1,3]>(k4)
    mv = MatMul(h, wv)  v4 = Reshape(mv, split)  vh = Transpose<perm=[0,2,1,3]>(v4)
    qa = Slice(qh, zero, middle, axis3)  qb = Slice(qh, middle, end, axis3)  qn = Neg(qb)
    qr = Concat<axis=-1>(qn, qa)  qc = Mul(qh, cos)  qi = Mul(qr, sin)  qe = Add(qc, qi)
    ka = Slice(kh, zero, middle, axis3)  kb = Slice(kh, middle, end, axis3)  kn = Neg(kb)
    kr = Concat<axis=-1>(kn, ka)  kc = Mul(kh, cos)  ki = Mul(kr, sin)  ke = Add(kc, ki)
    kt = Transpose<perm=[0,1,3,2]>(ke)  qk = MatMul(qe, kt)  z = Mul(qk, scale)  zm = Add(z, mask)
    p = Softmax<axis=-1>(zm)  o = MatMul(p, vh)  ot = Transpose<perm=[0,2,1,3]>(o)  o3 = Reshape(ot, merge)
    mo = MatMul(o3, wo)  s = Add(x, mo)
    sq2 = Pow(s, two)  ms2 = ReduceMean(sq2, last)  ve2 = Add(ms2, eps)  sd2 = Sqrt(ve2)  r2 = Reciprocal(sd2)
    n2 = Mul(s, r2)  h2 = Mul(gamma, n2)
    g = MatMul(h2, wf)  gs = Sigmoid(g)  ga = Mul(g, gs)  up = MatMul(h2, wk)  gu = Mul(ga, up)
    dn = MatMul(gu, wu)  y = Add(s, dn)
"""
GPT2 = """
    h = LayerNormalization<axis=-1>(x, gamma, beta)  hf = Reshape(h, flat)  c = Gemm(hf, wqkv, bqkv)
    c3 = Reshape(c, deep3)  q, k, v = Split<axis=2, num_outputs=3>(c3)
    q4 = Reshape(q, split)  qh = Transpose<perm=[0,2,1,3]>(q4)
    k4 = Reshape(k, split)  kt = Transpose<perm=[0,2,3,1]>(k4)
    v4 = Reshape(v, split)  vh = Transpose<perm=[0,2,1,3]>(v4)
    qk = MatMul(qh, kt)  z = Mul(qk, scale)  zm = Add(z, mask)  p = Softmax<axis=-1>(zm)  o = MatMul(p, vh)
    ot = Transpose<perm=[0,2,1,3]>(o)  of = Reshape(ot, flat)  a = Gemm(of, wo, bo)  a3 = Reshape(a, deep)
    s = Add(a3, x)  h2 = LayerNormalization<axis=-1>(s, gamma, beta)  h2f = Reshape(h2, flat)
    f = Gemm(h2f, wf, bf)  f3 = Reshape(f, deep)
    t1 = Mul(f3, half)  t2 = Pow(f3, three)  t3 = Mul(t2, cube)  t4 = Add(f3, t3)  t5 = Mul(t4, tanh_scale)
    t6 = Tanh(t5)  t7 = Add(t6, one)  g = Mul(t1, t7)  gf = Reshape(g, flat)  u = Gemm<transB=1>(gf, wu, bu)
    u3 = Reshape(u, deep)  y = Add(s, u3)
"""


def block(body, opset, **more):
    constants = {
        **{name: np.array(number, "f4") for name, number in NUMBERS.items()},
        **SHAPES,
        **TABLES,
        **weights("wq", "wk", "wv", "wo", "wf", "wu"),
        **vectors("bq", "bk", "bv", "bo", "bf", "bu", "gamma", "beta"),
        **more,
    }
    used = {k: v for k, v in constants.items() if f"{k})" in body or f"{k}," in body}
    mask = f", float[1,1,{LENGTH},{LENGTH}] mask" if "mask" in body else ""
    shape = f"[2,{LENGTH},{WIDTH}]"
    return graph_of(f"(float{shape} x{mask}) => (float{shape} y) {{ {body} }}", opset=opset, **used)


def by_head(*names):
    return {name: (RNG.standard_normal((WIDTH, HEADS, SIZE)) / 3).astype("f4") for name in names}


BLOCKS = {
    "torchscript": block(TORCHSCRIPT, 17),
    "keras": block(KERAS, 17, **by_head("wq", "wk", "wv"), wo=by_head("wo")["wo"].transpose(1, 2, 0).copy()),
    "llama": block(LLAMA, 20),
    "gpt2": block(
        GPT2,
        20,
        **weights("wqkv", columns=3 * WIDTH),
        **vectors("bqkv", size=3 * WIDTH),
        deep3=np.array([2, LENGTH, 3 * WIDTH]),
    ),
}
FUSED = {
    "torchscript": (
        ["fuse-layernorm", "fuse-microsoft-gelu", "fuse-bias-gelu", "fuse-multi-head-attention", "fuse-attention-projections"],
        {"Attention": 1, "LayerNormalization": 1, "BiasGelu": 1, "MatMul": 3, "Add": 4},
    ),
    "keras": (
        ["fuse-layernorm", "einsum-to-matmul", "fuse-quickgelu"],
        {"LayerNormalization": 1, "QuickGelu": 1, "Einsum": 0, "Erf": 0},
    ),
    "llama": (
        ["fuse-skip-rmsnorm", "fuse-microsoft-rotary", "fuse-multi-head-attention", "fuse-quickgelu"],
        {"SkipSimplifiedLayerNormalization": 1, "RotaryEmbedding": 2, "MultiHeadAttention": 1, "QuickGelu": 1},
    ),
    "gpt2": (
        ["unflatten-matmul", "fuse-tanh-gelu", "fuse-multi-head-attention", "fuse-skip-layernorm"],
        {"Gelu": 1, "MultiHeadAttention": 1, "SkipLayerNormalization": 1, "Gemm": 0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BLOCKS)
def test_fused_step_by_step(name):
    graph, (rules, expected) = BLOCKS[name], FUSED[name]
    for rule in rules:
        graph = apply_all(graph, rule)
    assert {op: ops(graph).get(op, 0) for op in expected} == expected


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", BLOCKS)
def test_random_rewrites_stay_equal_and_are_enumerated_incrementally(name, seed):
    chance, rules, graph = random.Random(seed), all_rules(), BLOCKS[name]
    known = scan(graph, rules)
    for _ in range(10):
        offered = known.enumeration().candidates
        exact = [c for c in offered if c.numeric_class is not NumericClass.APPROXIMATE]
        rule = chance.choice(sorted({c.rule for c in exact}))
        candidate = chance.choice([c for c in exact if c.rule == rule])
        try:
            result = apply(graph, candidate, rules)
        except RewriteError as error:
            raise AssertionError(f"{candidate.place} was offered but not applied: {error}") from error
        known, graph = rescan(known, result, rules), result
    assert known.enumeration() == find_candidates(graph, rules)
    report = check_equivalence(BLOCKS[name], graph, run, NumericClass.DOMAIN)
    assert report.passed, report.sentence()
    assert report.reacts
