// Package settings is the shelf on which a user's words become values: flags, environment and files, and
// what each of them means.
//
//   - config has the flag, the default and the origin of every setting.
//   - place assigns plugins and model to GPUs; limits reads what the operating system lets the process use.
//   - precision, schedule, selection and texts are the meaning of the settings of those names.
//   - world assigns the rows of a batch to the ranks of a data-parallel run.
//
// This shelf imports stages and base. It starts nothing, and no package on it has a part of the run.
package settings
