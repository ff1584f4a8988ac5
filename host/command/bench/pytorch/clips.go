package pytorch

// Clips is the file from which the Python side makes batches: the rows of a data set, and how rows become the inputs of
// the graph.
type Clips struct {
	Rows    []Clip   `json:"rows"`
	Tensors []Tensor `json:"tensors"` // of a batch
	Dataset []string `json:"dataset"` // the tensors that the stages and the graph need of the data set
	Stages  []Stage  `json:"stages"`  // in order
}

// Clip is a row. Its clip is a part of a file, in samples of the file.
type Clip struct {
	Path     string  `json:"path"`
	Offset   int     `json:"offset"`
	Frames   int     `json:"frames"`
	Tokens   []int32 `json:"tokens"`
	Speaker  int32   `json:"speaker"`
	Language int32   `json:"language"`
}

// Tensor is a tensor of a batch.
type Tensor struct {
	Name  string  `json:"name"`
	Shape []int   `json:"shape"`
	Pad   float64 `json:"pad"`
}

// Stage is an instance of the pipeline, with its complete configuration.
type Stage struct {
	Stage   string            `json:"stage"`
	Inputs  map[string]string `json:"inputs"`
	Outputs map[string]string `json:"outputs"`
	Config  map[string]any    `json:"config"`
}
