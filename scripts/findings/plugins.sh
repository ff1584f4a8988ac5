# verify-plugins: a plugin that writes to what is not its output is found in the batch and named, by --verify-plugins
verify-plugins() { gotest ./host 'TestVerifyPlugins$'; }

# undeclared-lengths: lengths that a stage changes without declaring them never reach the next stage
undeclared-lengths() { gotest ./host 'TestUndeclaredLengths$'; }

# plugin-text: control characters of a plugin's messages and log become visible, and its lines name it
plugin-text() {
  gotest ./shared/visible .
  gotest ./host/supervise 'TestJournal$|TestDropsAreReported|TestGoPanic'
}

# panic-in-helper: a panic in any goroutine of EachRow is an error of the batch, with the right line
panic-in-helper() { gotest ./shared/stage TestEachRowPanics; }

# plugin-memory: a plugin process has a limit of memory, and its peak is in the report
plugin-memory() { gotest ./host/supervise TestMemoryLimit; }

# plugin-range: f64 bytes, 1e30 and zeros in a stage's output are named warnings, and end the run with --on-range stop
plugin-range() { gotest ./host 'TestRange$'; }
