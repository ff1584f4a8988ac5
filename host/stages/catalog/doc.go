// Package catalog finds and checks the plugins of a run before any of them is started. Scan reads the subfolders of
// --plugins and reports what each is and whether it may be started. Resolve type-checks the run's pipeline against the
// plugins, the tensors that the host can produce, and the inputs of the training graph:
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
// The package executes nothing: a program that is started to ask what it is has already run.
//
// A file of a plugin folder (manifest, checksums, executable, script) may be a relative link to another file in that
// folder, but not a link that leaves it: otherwise the checked file might not be the file that is started. The folder
// itself may be a link, for example to a plugin under development.
package catalog
