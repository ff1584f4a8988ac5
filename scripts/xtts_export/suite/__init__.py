"""Small modules of everyday PyTorch: what exports, and what is refused.

To add one, write a class in the file of its subject, or in a new file, which is found by itself:

    class Swish(Case):
        \"""`x * torch.sigmoid(x)`\"""                     # what docs/export.md lists

        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(WIDTH, WIDTH)

        def forward(self, x):                              # any of case.INPUTS, by name
            y = self.linear(x)
            return y * torch.sigmoid(y)

`forward` returns any tensor whose first axis is the rows, of which Case makes a loss, or the loss's scalars as a dict. test_suite.py
exports the module and compares loss and gradients with PyTorch at three sizes, one with an empty row. A module that cannot be exported
declares so with `refused` and `way_out`, and marks the line with `# blamed` (case.py). Run one, then renew the page's tables:

    cd scripts
    ../.cache/venv-export/bin/python -m pytest -p no:cacheprovider -q xtts_export/suite -k Swish
    ../.cache/venv-export/bin/python -m xtts_export.suite.table
"""
