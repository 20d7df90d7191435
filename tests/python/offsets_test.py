"""Offset allocation from Python and from the command line."""

import gzip
import json
import pickle

import numpy as np
import pytest

import mallocgame as mg

TABLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
KEYS = [
    *("table", "intervals", "capacity", "alignment", "given", "status", "height", "bound"),
    *("nodes", "seconds"),
]
CHECK_KEYS = [
    *("table", "intervals", "capacity", "alignment", "valid", "rule", "message", "height"),
    *("ids", "lines", "time", "bytes"),
]


def rows_of(path):
    header, *lines = path.read_text().splitlines()
    return [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]


def test_command(run, run_json, tmp_path):
    (tmp_path / "in.csv").write_text(TABLE)
    row = run_json("offsets", "in.csv", "--capacity", 12, "-o", "out.csv")
    assert list(row) == KEYS
    assert (row["status"], row["height"], row["intervals"]) == ("feasible", 12, 5)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "id,lower,upper,size,offset"
    rows = [list(map(int, line.split(",")[1:])) for line in lines[1:]]
    for i, (begin, end, size, offset) in enumerate(rows):
        assert 0 <= offset <= 12 - size
        assert not any(
            begin < b[1] and b[0] < end and offset < b[3] + b[2] and b[3] < offset + size
            for b in rows[:i]
        )


def test_intervals_of_no_length_overlap_nothing(run_json, tmp_path):
    (tmp_path / "dead.csv").write_text("id,lower,upper,size\na,-5,5,4\nb,+2,2,6\nc,-5,5,4\n")
    solved = run_json("offsets", "dead.csv", "-o", "out.csv")
    assert (solved["height"], solved["bound"]) == (8, 8)
    assert run_json("offsets", "out.csv", "--check", "--capacity", 8)["valid"]


def test_too_little_room(run, tmp_path):
    (tmp_path / "in.csv").write_text(TABLE)
    done = run("offsets", "in.csv", "--capacity", 11, "-o", "out.csv", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["status"] == "infeasible"
    assert not (tmp_path / "out.csv").exists()


def test_least_height(run, run_json, tmp_path):
    # Each time is full with 8, but they fit only into 10.
    (tmp_path / "in.csv").write_text(
        "id,begin,upper,size\na,0,1,6\nb,0,3,2\nc,4,5,6\nd,2,5,2\ne,1,2,4\nf,3,4,4\ng,1,4,2\n"
    )
    row = run_json("offsets", "in.csv", "-o", "out.csv")
    assert list(row) == KEYS
    assert (row["capacity"], row["status"]) == (None, "feasible")
    assert (row["height"], row["bound"]) == (10, 10)
    assert "height 10, the least there is" in run("offsets", "in.csv").stdout
    assert run("offsets", "in.csv", "--capacity", 9).returncode == 1
    assert "valid: height 10 of 10" in run("offsets", "out.csv", "--check", "--capacity", 10).stdout


def test_least_height_that_is_not_proven(run, tmp_path):
    # Where a is first at byte 0 and then at byte 2, c would fit between.
    (tmp_path / "in.csv").write_text(
        "id,lower,upper,size,gaps\na,0,9,3,0-5@0:1 5-9@2:3\nc,0,9,1,\n"
    )
    done = run("offsets", "in.csv")
    assert done.returncode == 0
    assert "height 4, the least found; none is below 3" in done.stdout


def test_given_offsets_stay(run_json, tmp_path):
    (tmp_path / "in.csv").write_text(
        "id,lower,upper,size,offset\nw,0,8,3,5\nx,0,4,5,\ny,4,8,4,-1\nz,2,6,2,8\n"
    )
    row = run_json("offsets", "in.csv", "--capacity", 10, "-o", "out.csv")
    assert row["given"] == 2
    offsets = {row["id"]: int(row["offset"]) for row in rows_of(tmp_path / "out.csv")}
    assert (offsets["w"], offsets["z"], offsets["x"]) == (5, 8, 0)
    assert offsets["y"] <= 1


@pytest.mark.parametrize(
    ("offsets", "arguments", "says"),
    [
        (
            (4, 6, ""),
            (),
            "row 'ann' (line 2) takes the bytes [4, 8), and row 'bob' (line 3) the bytes [6, 9) "
            "over the same time [2, 6)",
        ),
        ((4, 10, ""), ("--capacity", 12), "row 'bob' (line 3): found bytes [10, 13)"),
        ((4, 9, ""), ("--alignment", 4), "row 'bob' (line 3): found offset 9, allowed: a multiple"),
    ],
)
def test_given_offsets_that_cannot_be(run, tmp_path, offsets, arguments, says):
    a, b, c = offsets
    (tmp_path / "in.csv").write_text(
        f"id,lower,upper,size,offset\nann,0,6,4,{a}\nbob,2,9,3,{b}\ncat,2,9,3,{c}\n"
    )
    done = run("offsets", "in.csv", *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert "in.csv: given offsets: " in done.stderr and says in done.stderr


def test_alignments_and_gaps(run_json, tmp_path):
    (tmp_path / "in.csv").write_text(
        "alignment,gaps,size,id,upper,lower\n4,,3,p,9,0\n1,3-6,4,q,9,0\n16,,4,r,6,3\n2,,0,s,9,0\n"
    )
    row = run_json("offsets", "in.csv", "--alignment", 2, "-o", "out.csv")
    rows = rows_of(tmp_path / "out.csv")
    assert list(rows[0]) == ["id", "lower", "upper", "size", "alignment", "gaps", "offset"]
    p, q, r, s = (int(row["offset"]) for row in rows)
    assert p % 4 == 0 and q % 2 == 0 and r % 16 == 0 and s % 2 == 0
    # r, which is there only in q's gap, may lie at 0 and q in the same place.
    assert row["height"] == row["bound"] == max(p + 3, q + 4, r + 4) == 7


def test_files_of_others_are_read(run_json, tmp_path):
    (tmp_path / "in.csv").write_bytes(
        b"\xef\xbb\xbf buffer , start,end,size , layer\r\n\r\nk, 0, 2,+4,conv\r\n,,,,\r\n"
        b"l,3,5,4,\r\n"
    )
    (tmp_path / "in.csv.gz").write_bytes(gzip.compress((tmp_path / "in.csv").read_bytes()))
    for name in ("in.csv", "in.csv.gz"):
        run_json("offsets", name, "--capacity", 4, "-o", "out.csv")
        assert (
            tmp_path / "out.csv"
        ).read_bytes() == b"id,lower,upper,size,offset\nk,0,3,4,0\nl,3,6,4,0\n"


SOLUTION = "id,lower,upper,size,alignment,offset\nu,0,4,8,1,0\nv,2,6,4,4,{v}\nw,5,9,8,1,{w}\n"


@pytest.mark.parametrize(
    ("v", "w", "arguments", "rule", "ids", "time", "shared"),
    [
        (8, 0, (), "none", [], None, None),
        (8, 0, ("--capacity", 12), "none", [], None, None),
        (8, 0, ("--capacity", 11), "bounds", ["v"], None, None),
        (10, 0, (), "alignment", ["v"], None, None),
        (8, 1, ("--alignment", 8), "alignment", ["w"], None, None),
        (4, 0, (), "overlap", ["u", "v"], [2, 4], [4, 8]),
        (8, 6, (), "overlap", ["v", "w"], [5, 6], [8, 12]),
    ],
)
def test_check(run, tmp_path, v, w, arguments, rule, ids, time, shared):
    (tmp_path / "in.csv").write_text(SOLUTION.format(v=v, w=w))
    done = run("offsets", "in.csv", "--check", *arguments, "--json")
    row = json.loads(done.stdout)
    assert list(row) == CHECK_KEYS
    assert done.returncode == (0 if rule == "none" else 1)
    assert (row["valid"], row["rule"], row["ids"]) == (rule == "none", rule, ids)
    assert row["lines"] == [{"u": 2, "v": 3, "w": 4}[name] for name in ids]
    assert (row["time"], row["bytes"], row["height"]) == (time, shared, max(v + 4, w + 8))
    text = run("offsets", "in.csv", "--check", *arguments).stdout
    assert text.startswith("valid: height " if rule == "none" else f"not valid: {rule}: row '")
    assert row["message"] in text


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        ("id,lower\n", ("--capacity", 1), "in.csv: line 1"),
        (TABLE + "b6,4,3,1\n", ("--capacity", 1), "line 7: lower 4 is above upper 3"),
        (TABLE, ("--capacity", -1), "--capacity"),
        (TABLE, ("--capacity", 1, "--alignment", 0), "--alignment"),
        (TABLE, ("--capacity", 1 << 60), "capacity"),
        (TABLE + f"b6,4,5,{1 << 50}\n", (), "in.csv: row 'b6' (line 7): size: found"),
        (TABLE, ("--check",), "in.csv: line 2: found no offset of 'b1'"),
        ("id,lower,upper,size,offset\na,0,1,2,0\nb,0,1,2,\n", ("--check",), "line 3: found no off"),
        (TABLE, ("--check", "-o", "out.csv"), "-o: nothing is found with --check"),
    ],
)
def test_refused(run, tmp_path, text, arguments, says):
    (tmp_path / "in.csv").write_text(text)
    done = run("offsets", "in.csv", *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and says in done.stderr


def test_from_python():
    intervals = np.array([[0, 2, 3], [1, 3, 3]])
    result = mg.offsets.solve(intervals, 8, alignment=4)
    assert (result.status, sorted(result.offsets), result.height) == ("feasible", [0, 4], 7)
    assert result.bound == 7
    assert mg.offsets.solve(intervals, 6, alignment=4).status == "infeasible"
    assert mg.offsets.solve(intervals).height == 6
    with pytest.raises(mg.InvalidInputError, match="shape"):
        mg.offsets.solve(np.zeros((2, 2), np.int64), 1)
    with pytest.raises(mg.InvalidInputError, match="interval 0: size"):
        mg.offsets.solve(np.array([[0, 1, -1]]), 1)
    with pytest.raises(mg.InvalidInputError, match="seconds"):
        mg.offsets.solve(intervals, 1, seconds=float("nan"))
    with pytest.raises(mg.InvalidInputError, match="an OffsetTable, or int64"):
        mg.offsets.solve("id,lower,upper,size", 1)


def test_table_from_python(tmp_path):
    table = mg.offsets.OffsetTable(
        np.array([[0, 9, 4], [2, 5, 4], [0, 9, 2]]),
        ids=["a", "b", "c"],
        alignments=np.array([1, 4, 1]),
        given=np.array([-1, -1, 4]),
        gaps=np.array([[0, 1, 6, 0, 0]]),
    )
    result = mg.offsets.solve(table)
    assert result.offsets.tolist() == [0, 0, 4] and result.height == result.bound == 6
    verdict = mg.offsets.check(table, result.offsets, 6)
    assert verdict.ok and verdict.rule == "none" and verdict.message == ""
    assert verdict.height == 6 and verdict.intervals == () and verdict.time is None
    moved = mg.offsets.check(table, np.array([0, 0, 5]))
    assert moved.rule == "given" and moved.intervals == (2,)
    mg.offsets.save(table, tmp_path / "t.csv", result.offsets)
    text = (tmp_path / "t.csv").read_bytes()
    assert text == (
        b"id,lower,upper,size,alignment,gaps,offset\na,0,9,4,1,1-6,0\nb,2,5,4,4,,0\nc,0,9,2,1,,4\n"
    )
    back = mg.offsets.load(tmp_path / "t.csv")
    assert back.given.tolist() == [0, 0, 4] and back.lines == [2, 3, 4]
    assert len(back) == 3 and back.ids == ["a", "b", "c"]
    for name in ("intervals", "alignments", "gaps"):
        assert np.array_equal(getattr(back, name), getattr(table, name))
    assert back.to_csv() == text


def test_overlap_from_python():
    intervals = np.array([[0, 4, 2], [6, 9, 2], [3, 7, 2]])
    verdict = mg.offsets.check(intervals, np.array([0, 0, 1]))
    assert not verdict.ok and verdict.rule == "overlap"
    assert (verdict.intervals, verdict.time, verdict.bytes) == ((0, 2), (3, 4), (1, 2))
    assert verdict.message.startswith("interval 0 takes the bytes [0, 2), and interval 2")


def test_what_a_user_holds_pickles():
    text = (
        b"lower,note,end,gaps,size,offset,id,alignment\n"
        b"0,\xff,8,2-3 5-5@1:2,4,8,k,4\n1,,2,,1,,\xfe,1\n"
    )
    table = mg.offsets.OffsetTable.from_csv(text)
    assert (
        pickle.loads(pickle.dumps(table)).to_csv()
        == table.to_csv()
        == (b"id,lower,upper,size,alignment,gaps,offset\nk,0,9,4,4,2-4 5-6@1:2,8\n\xfe,1,3,1,1,,\n")
    )
    assert pickle.loads(pickle.dumps(table)).lines == [2, 3]
    result = mg.offsets.solve(table)
    again = pickle.loads(pickle.dumps(result))
    for name in ("status", "height", "bound", "nodes", "seconds"):
        assert getattr(again, name) == getattr(result, name)
    assert np.array_equal(again.offsets, result.offsets)
    for offsets in (result.offsets, result.offsets + 1, np.array([8, 8])):
        verdict = mg.offsets.check(table, offsets)
        again = pickle.loads(pickle.dumps(verdict))
        assert repr(again) == repr(verdict) and bool(again) == verdict.ok
        for name in ("ok", "rule", "message", "intervals", "time", "bytes", "height"):
            assert getattr(again, name) == getattr(verdict, name)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"ids": ["a"]}, "ids: found 1, allowed: 2"),
        ({"ids": ["a", "a"]}, "id 'a' stands there twice"),
        ({"ids": ["a", "b,c"]}, "id: found 'b,c'"),
        ({"ids": ["a", " b"]}, "id: found ' b'"),
        ({"alignments": np.array([1])}, "alignments: found 1, allowed: 2"),
        ({"given": np.array([[1, 2]])}, "given: allowed: one dimension"),
        ({"gaps": np.array([[0, 1, 2]])}, "gaps: allowed shape"),
        ({"gaps": np.array([[2, 0, 1, 0, 0]])}, "gaps: found interval 2"),
        ({"alignments": np.array([1, 0])}, "interval '1': alignment: found 0"),
        ({"given": np.array([-1, -2])}, "interval '1': offset: found -2"),
        ({"gaps": np.array([[0, 1, 0, 0, 0]])}, "interval '0': found a gap over the times"),
    ],
)
def test_tables_refused_from_python(arguments, says):
    with pytest.raises(mg.InvalidInputError, match=says):
        mg.offsets.solve(mg.offsets.OffsetTable(np.array([[0, 2, 3], [1, 3, 3]]), **arguments))


def test_offsets_refused_from_python():
    with pytest.raises(mg.InvalidInputError, match="offsets: found 1, allowed: 2"):
        mg.offsets.check(np.array([[0, 2, 3], [1, 3, 3]]), np.array([0]))
    with pytest.raises(mg.InvalidInputError, match="line 2"):
        mg.offsets.OffsetTable.from_csv(b"id,lower,upper,size\na,0,1\n")
