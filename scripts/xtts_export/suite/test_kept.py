from . import kept


def test_kept_graphs_are_current(tmp_path):
    kept.write_all(tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (kept.FOLDER / path.name).read_bytes(), "run: cd scripts && python -m xtts_export graphs"
