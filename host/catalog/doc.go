// Package catalog knows the plugins of a run before any of them runs. Scan reads the folders below --plugins
// and says of each what it is and whether it may be started; Resolve type-checks the run's pipeline against them, the
// tensors that the host can make, and the inputs of the training graph:
//
//	entries, err := catalog.Scan("plugins")
//	...
//	r, err := catalog.Resolve(bundle.Pipeline, entries, catalog.Types{
//		Dataset: dataset.Tensors(), Inputs: bundle.Inputs, Buckets: bundle.Buckets, Features: bundle.Features})
//	if err != nil {
//		return err // names the instance, the port, the tensor, and what would fit
//	}
//	for _, i := range r.Instances { fmt.Println(i.Name, r.Plugins[i.Plugin].Dir) }
//
// Nothing here executes anything: a program that is started to learn what it is has already run.
//
// A file of a plugin folder (its manifest, checksums, executable, scripts) may be a relative link to another file of that
// folder, never a link that leads out of it: what was checked would not be what is started. The folder itself may
// be a link, which is how a plugin under development is put into a plugins folder.
package catalog
