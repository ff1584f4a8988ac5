# former-exporter: a bundle of a former exporter is trained with a warning of what its graphs may have wrong, and one that was exported again without
former-exporter() {
  cp -r "$TREE/ortgraphs/testdata/pico" bundle
  train --graph bundle --max-steps 1 --run-dir run 2>&1 | tee output
  says 'the bundle is of a former exporter: its evaluations are wrong if the model asks for self.training'
  says 'the bundle is of a former exporter' run/report.json
  sed -i 's/"version": 1,/"version": 1, "exporter": 2,/' bundle/bundle.json
  train --graph bundle --max-steps 1 --run-dir again 2>&1 | tee output
  silent 'former exporter'
}
